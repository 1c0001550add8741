"""A program on the official Python client that changes the schema of a large table, and waits for that with the client's default settings while its server is
killed and started again. See interop/restart.

usage: schemachange.py DATABASE
It prints a line when its operation has begun, and how far that has come whenever it asks. It fails on any error, if the progress falls, and if the operation does not say
of each statement when it took effect.
"""

import sys
import time

from google.cloud import spanner

STATEMENTS = [
    "CREATE INDEX PythonByV ON Facts(V)",
    "ALTER TABLE Facts ADD COLUMN PythonWord STRING(20) NOT NULL DEFAULT ('word')",
    "CREATE UNIQUE INDEX PythonOnce ON Facts(V DESC)",
    "ALTER TABLE Facts ADD CONSTRAINT PythonSmall CHECK (K < 1000000)",
]


def main(name):
    _, project, _, instance, _, database = name.split("/")
    db = spanner.Client(project=project).instance(instance).database(database)
    op = db.update_ddl(STATEMENTS)
    print("began", op.operation.name, flush=True)
    last = 0
    while not op.done():
        now = sum(p.progress_percent for p in op.metadata.progress)
        assert now >= last, "the progress falls from %d to %d" % (last, now)
        print("progress", now, flush=True)
        last = now
        time.sleep(0.05)
    op.result()
    times = list(op.metadata.commit_timestamps)
    assert len(times) == len(STATEMENTS) and times == sorted(times), times
    assert [p.progress_percent for p in op.metadata.progress] == [100] * len(STATEMENTS), op.metadata
    print("done", flush=True)


main(*sys.argv[1:])
