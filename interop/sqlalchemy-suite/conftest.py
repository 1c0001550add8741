"""The compliance suite's set-up: the dialect is registered under its name, and SQLAlchemy's plugin of pytest runs the tests."""

import pytest
from sqlalchemy import Column, Table, literal
from sqlalchemy.dialects import registry

registry.register("spanner", "google.cloud.sqlalchemy_spanner", "SpannerDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F401, F403


@pytest.fixture
def literal_round_trip_spanner(metadata, connection):
    """Writes values as literals into the column of a table without a key, and reads them back."""

    def run(type_, values, wanted, filter_=None, compare=None, support_whereclause=True):
        table = Table("t", metadata, Column("x", type_))
        table.create(connection)
        for value in values:
            connection.execute(table.insert().values(x=literal(value, type_, literal_execute=True)))
        query = table.select()
        if support_whereclause:
            query = query.where(table.c.x == literal(values[0] if compare is None else compare, type_, literal_execute=True))
        rows = connection.execute(query).all()
        assert rows
        for row in rows:
            assert (filter_(row[0]) if filter_ else row[0]) in wanted

    return run
