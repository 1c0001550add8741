"""Alembic on the official SQLAlchemy dialect: migrations that are written by hand, and migrations that Alembic makes of declared models,
up and down. Each migration's DDL runs while a transaction is open.

It reads SPANNER_EMULATOR_HOST and needs the packages of requirements.txt.
"""

import datetime
import decimal
import pathlib
import tempfile
import textwrap

from alembic import command
from alembic.config import Config
from sqlalchemy import CheckConstraint, Computed, ForeignKey, Index, JSON, LargeBinary, MetaData, String, Table, create_engine, inspect, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

import steps
from steps import same

URL = f"spanner+spanner:///projects/{steps.PROJECT}/instances/{steps.instance_of('alembic')}/databases/{steps.DATABASE}"

ENVIRONMENT = '''
from alembic import context
from alembic.ddl.impl import DefaultImpl
from sqlalchemy import create_engine


class SpannerImpl(DefaultImpl):
    __dialect__ = "spanner+spanner"


url = context.config.get_main_option("sqlalchemy.url")
with create_engine(url).connect() as connection:
    context.configure(connection=connection, target_metadata=context.config.attributes.get("metadata"), version_table_pk=False)
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


# What "alembic init" writes, shortened.
TEMPLATE = '''
from alembic import op
import sqlalchemy as sa
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}

def upgrade():
    ${upgrades if upgrades else "pass"}

def downgrade():
    ${downgrades if downgrades else "pass"}
'''


def first_models():
    """Models as SQLAlchemy's documentation writes them: the key of artists is made by the database."""

    class Base(DeclarativeBase):
        pass

    class Genre(Base):
        __tablename__ = "genres"
        name: Mapped[str] = mapped_column(String(50), primary_key=True)

    class Artist(Base):
        __tablename__ = "artists"
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str] = mapped_column(String(100))
        born: Mapped[datetime.date | None]
        fee: Mapped[decimal.Decimal | None]
        score: Mapped[float | None]
        active: Mapped[bool] = mapped_column(server_default=text("TRUE"))
        profile: Mapped[dict | None] = mapped_column(JSON)
        upper_name: Mapped[str | None] = mapped_column(String(100), Computed("UPPER(name)"))
        records: Mapped[list["Record"]] = relationship(back_populates="artist", cascade="all, delete-orphan")

    class Record(Base):
        __tablename__ = "records"
        id: Mapped[int] = mapped_column(primary_key=True)
        title: Mapped[str] = mapped_column(String(200))
        cover: Mapped[bytes | None] = mapped_column(LargeBinary(1000))
        made: Mapped[datetime.datetime | None]
        artist_id: Mapped[int] = mapped_column(ForeignKey("artists.id", name="records_of_artists"))
        artist: Mapped[Artist] = relationship(back_populates="records")
        __table_args__ = (Index("records_by_title", "title", unique=True), CheckConstraint("LENGTH(title) > 0", name="titles_are_not_empty"))

    return Base, Artist, Record


def second_models():
    """The models of a later version: a column, an index and a table more, a column less, a longer one."""

    base, artist, record = first_models()
    metadata = MetaData()
    for table in base.metadata.sorted_tables:
        table.to_metadata(metadata)
    artists, records = metadata.tables["artists"], metadata.tables["records"]
    artists.append_column(mapped_column("country", String(2)).column)
    Index("artists_by_country", artists.c.country)
    records.c.title.type = String(300)
    records._columns.remove(records.c.cover)
    Table("labels", metadata, mapped_column("id", String(36), primary_key=True).column, mapped_column("name", String(50)).column)
    return metadata


def write_migrations(folder, hand_made):
    (folder / "versions").mkdir(parents=True)
    (folder / "env.py").write_text(ENVIRONMENT)
    (folder / "script.py.mako").write_text(TEMPLATE)
    for revision, (below, up, down) in hand_made.items():
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


def main():
    database = steps.create_database("alembic")
    with tempfile.TemporaryDirectory() as folder:
        config = write_migrations(pathlib.Path(folder) / "written", MIGRATIONS)
        made = write_migrations(pathlib.Path(folder) / "made", {})

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

        def migrate_models(metadata, message):
            made.attributes["metadata"] = metadata
            command.revision(made, message=message, autogenerate=True)
            command.upgrade(made, "head")
            command.check(made)

        def autogenerate():
            # The dialect cannot reflect a database without tables: it makes an empty list of names.
            database.update_ddl(["CREATE TABLE genres (name STRING(50) NOT NULL) PRIMARY KEY (name)"]).result()
            migrate_models(first_models()[0].metadata, "first")

        def rows():
            _, artist, record = first_models()
            with Session(create_engine(URL)) as session:
                ann = artist(name="Ann", fee=decimal.Decimal("12.5"), born=datetime.date(1990, 1, 2), profile={"a": [1]}, records=[record(title="One")])
                session.add(ann)
                session.commit()
                same((ann.id > 0, ann.upper_name, ann.active, ann.profile), (True, "ANN", True, {"a": [1]}))
                same(session.scalars(select(record.title).join(artist).where(artist.name == "Ann")).all(), ["One"])

        def autogenerate_further():
            migrate_models(second_models(), "second")

        def reflect():
            metadata = MetaData()
            metadata.reflect(create_engine(URL))
            same(sorted(metadata.tables), ["alembic_version", "artists", "genres", "labels", "records"])
            records = metadata.tables["records"]
            same([(c.name, c.type.length) for c in records.columns if c.name == "title"], [("title", 300)])
            same([k.target_fullname for k in records.foreign_keys], ["artists.id"])
            same([(i.name, i.unique) for i in metadata.tables["artists"].indexes], [("artists_by_country", False)])

        def back_from_models():
            command.downgrade(made, "base")
            same(inspect(create_engine(URL)).get_table_names(), ["alembic_version", "genres"])

        steps.run("alembic", {
            "first upgrade": first, "second upgrade": second, "downgrade": back, "autogenerate": autogenerate, "rows": rows,
            "autogenerate further": autogenerate_further, "reflect": reflect, "downgrade of models": back_from_models})


main()
