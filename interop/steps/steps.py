"""What the Python applications of interop have in common: a database of their own, and steps whose results are printed."""

import os
import sys
import traceback

PROJECT, DATABASE = "interop", "app"


def instance_of(client):
    """The name of the instance that a run of an application has to itself."""
    return f"{client}-{os.getpid()}"


def create_database(client):
    """Makes the instance of a run, with an empty database, which it returns."""
    from google.cloud import spanner  # which not every application has

    instance = spanner.Client(project=PROJECT).instance(
        instance_of(client), configuration_name=f"projects/{PROJECT}/instanceConfigs/emulator-config", node_count=1)
    instance.create().result()
    database = instance.database(DATABASE)
    database.create().result()
    return database


def run(client, steps):
    """Calls each of the steps by name, after one that fails also the next, and ends the process."""
    failed = 0
    for name, step in steps.items():
        try:
            step()
            print("ok  ", client, name, flush=True)
        except Exception as e:
            failed += 1
            print(f"FAIL {client} {name}: {type(e).__name__}: {e}", flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{len(steps) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def same(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")
