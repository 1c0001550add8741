"""Reads tables with Python's libraries for `crowfoot bench retrieval`: one request a line, as worker.go describes."""

import importlib
import sys

replies = open(3, "w", encoding="utf-8")  # what libraries print goes to standard output and is no reply


def reply(*fields):
    print(*(" ".join(str(f).split()) for f in fields), sep="\t", file=replies, flush=True)


def count(batches):
    return sum(batch.num_rows for batch in batches)


def pyarrow_parquet(name, threads):
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    pyarrow.set_cpu_count(int(threads))
    with parquet.ParquetFile(name) as file:
        return count(file.iter_batches(use_threads=int(threads) > 1))


def pyarrow_rewrite(source, target):
    """Writes the rows of a Parquet file again, as pyarrow does by default."""
    parquet = importlib.import_module("pyarrow.parquet")
    table = parquet.read_table(source)
    parquet.write_table(table, target)
    return table.num_rows


def duckdb_connect(threads):
    return importlib.import_module("duckdb").connect(config={"threads": int(threads)})


def duckdb_parquet(name, threads):
    with duckdb_connect(threads) as connection:
        return count(connection.sql("SELECT * FROM read_parquet('%s')" % name).to_arrow_reader(100_000))


def duckdb_aggregate(query, threads):
    """The second column of the result has the rows of each group."""
    with duckdb_connect(threads) as connection:
        return sum(group[1] for group in connection.sql(query).fetchall())


def adbc(address, database, query):
    flight = importlib.import_module("adbc_driver_flightsql.dbapi")
    header = "adbc.flight.sql.rpc.call_header."
    options = {header + "database": database, header + "max-partitions": "1"}
    with flight.connect("grpc://" + address, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return count(cursor.fetch_record_batch())


def found(name, module):
    try:
        return name + " " + importlib.import_module(module).__version__
    except ImportError:
        return name


def main():
    reply("ready", found("pyarrow", "pyarrow"), found("duckdb", "duckdb"), found("adbc", "adbc_driver_flightsql"))
    work = {f.__name__: f for f in (pyarrow_parquet, pyarrow_rewrite, duckdb_parquet, duckdb_aggregate, adbc)}
    for line in sys.stdin:
        name, *arguments = line.rstrip("\n").split("\t")
        try:
            reply("rows", work[name](*arguments))
        except Exception as e:  # the reader of the reply judges it
            reply("error", "%s: %s" % (type(e).__name__, e))


main()
