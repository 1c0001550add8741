"""Alembic on the official SQLAlchemy dialect: migrations up and down. Each migration's DDL runs while a transaction is open.

It reads SPANNER_EMULATOR_HOST and needs the packages of requirements.txt.
"""

import os
import pathlib
import sys
import tempfile
import textwrap

from alembic import command
from alembic.config import Config
from google.cloud import spanner
from sqlalchemy import create_engine, inspect, text

PROJECT, INSTANCE, DATABASE = "interop", f"alembic-{os.getpid()}", "app"
URL = f"spanner+spanner:///projects/{PROJECT}/instances/{INSTANCE}/databases/{DATABASE}"

ENVIRONMENT = '''
from alembic import context
from alembic.ddl.impl import DefaultImpl
from sqlalchemy import create_engine


class SpannerImpl(DefaultImpl):
    __dialect__ = "spanner+spanner"


url = context.config.get_main_option("sqlalchemy.url")
with create_engine(url).connect() as connection:
    context.configure(connection=connection, target_metadata=None, version_table_pk=False)
    with context.begin_transaction():
        context.run_migrations()
'''

MIGRATIONS = {
    "a1": (None, """
        op.create_table("singers", sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False), sa.Column("name", sa.String(100)))
    """, """
        op.drop_table("singers")
    """),
    "b2": ("a1", """
        op.add_column("singers", sa.Column("born", sa.Integer))
        op.create_index("singers_by_name", "singers", ["name"])
    """, """
        op.drop_index("singers_by_name", "singers")
        op.drop_column("singers", "born")
    """),
}


def write_migrations(folder):
    (folder / "versions").mkdir()
    (folder / "env.py").write_text(ENVIRONMENT)
    for revision, (below, up, down) in MIGRATIONS.items():
        (folder / "versions" / f"{revision}.py").write_text(
            f"import sqlalchemy as sa\nfrom alembic import op\n\nrevision = {revision!r}\ndown_revision = {below!r}\n"
            f"\n\ndef upgrade():{textwrap.indent(textwrap.dedent(up), '    ')}"
            f"\n\ndef downgrade():{textwrap.indent(textwrap.dedent(down), '    ')}\n")
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", URL)
    return config


def version():
    with create_engine(URL).connect() as connection:
        return [row[0] for row in connection.execute(text("SELECT version_num FROM alembic_version"))]


def same(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def main():
    client = spanner.Client(project=PROJECT)
    instance = client.instance(INSTANCE, configuration_name=f"projects/{PROJECT}/instanceConfigs/emulator-config", node_count=1)
    instance.create().result()
    instance.database(DATABASE).create().result()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        config = write_migrations(pathlib.Path(folder))

        def first():
            command.upgrade(config, "a1")
            same(version(), ["a1"])

        def second():
            command.upgrade(config, "head")
            same(version(), ["b2"])
            same(sorted(c["name"] for c in inspect(create_engine(URL)).get_columns("singers")), ["born", "id", "name"])

        def back():
            command.downgrade(config, "base")
            same(version(), [])
            same(inspect(create_engine(URL)).has_table("singers"), False)

        steps = {"first upgrade": first, "second upgrade": second, "downgrade": back}
        for name, step in steps.items():
            try:
                step()
                print("ok   alembic", name)
            except Exception as e:  # the next step is tried in any case
                failed += 1
                print(f"FAIL alembic {name}: {type(e).__name__}: {e}")
    print(f"{len(steps) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
