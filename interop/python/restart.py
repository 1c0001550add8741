"""A program on the official Python client that commits again and again while its server is restarted. See interop/restart.

usage: restart.py DATABASE STOP
It adds one to its row of table Counters until the file STOP exists, and prints a line after each commit. It fails on any error, and if
the row does not hold what was committed.
"""

import os
import sys
import time

from google.cloud import spanner
from google.cloud.spanner_v1 import param_types

ID = "python"


def add(tx, committed):
    ((n,),) = tx.execute_sql("SELECT N FROM Counters WHERE Id = @id", {"id": ID}, {"id": param_types.STRING})
    assert n == committed, "the row holds %d after %d commits" % (n, committed)
    tx.execute_update("UPDATE Counters SET N = N + 1 WHERE Id = @id", {"id": ID}, {"id": param_types.STRING})


def main(name, stop):
    _, project, _, instance, _, database = name.split("/")
    db = spanner.Client(project=project).instance(instance).database(database)
    committed = 0
    while not os.path.exists(stop):
        db.run_in_transaction(add, committed)
        committed += 1
        print("committed", committed, flush=True)
        time.sleep(0.02)


main(*sys.argv[1:])
