"""What the suite imports from its helpers: where the database is. SUITE_DATABASE names it."""

import os


def get_project():
    return os.environ["SUITE_DATABASE"].split("/")[1]


def get_db_url():
    return "spanner+spanner:///" + os.environ["SUITE_DATABASE"]
