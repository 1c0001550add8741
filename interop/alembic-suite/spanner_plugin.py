"""A plugin of pytest: the dialect is registered under its name, and known to Alembic as its README asks users to make it."""

from alembic.ddl.impl import DefaultImpl
from sqlalchemy.dialects import registry

registry.register("spanner", "google.cloud.sqlalchemy_spanner", "SpannerDialect")


class SpannerImpl(DefaultImpl):
    __dialect__ = "spanner+spanner"
