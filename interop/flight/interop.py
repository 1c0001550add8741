"""A small application on ADBC's Flight SQL driver: tables, types, parameters, partitions, transactions, bulk load, metadata, errors."""

import concurrent.futures
import os
import sys

import adbc_driver_flightsql.dbapi as flight
import adbc_driver_manager
import duckdb
import pandas
import polars
import pyarrow

import steps

HEADER = "adbc.flight.sql.rpc.call_header."


def connect(database, autocommit=True, **headers):
    options = {HEADER + name.replace("_", "-"): value for name, value in {"database": database, **headers}.items()}
    return flight.connect("grpc://" + os.environ["SPANNER_EMULATOR_HOST"], db_kwargs=options, autocommit=autocommit)


class App:
    def __init__(self, database):
        self.database = database
        self.conn = connect(database, max_partitions="3")
        self.cur = self.conn.cursor()

    def rows(self, sql, *params):
        self.cur.execute(sql, params or None)
        return self.cur.fetchall()

    def schema(self):
        self.cur.execute(
            """CREATE TABLE Types (Id INT64 NOT NULL, Flag BOOL, Double FLOAT64, Price NUMERIC, Name STRING(MAX), Data BYTES(MAX), Day DATE,
               Stamp TIMESTAMP, Doc JSON, Uid UUID, Tags ARRAY<STRING(MAX)>) PRIMARY KEY (Id)"""
        )

    def updates(self):
        self.cur.execute(
            """INSERT INTO Types (Id, Flag, Double, Price, Name, Data, Day, Stamp, Doc, Uid, Tags) VALUES
               (1, true, 1.5, 12.5, 'ÿ', b'\\x00\\xff', '2024-02-29', '2024-02-29T01:02:03.000000004Z', JSON '{"a": 1}',
                '00112233-4455-6677-8899-aabbccddeeff', ['x', NULL])"""
        )
        assert self.cur.rowcount == 1, self.cur.rowcount
        self.cur.executemany("INSERT INTO Types (Id, Name) VALUES (?, ?)", [(2, "two"), (3, None)])
        assert self.cur.rowcount == 2, self.cur.rowcount

    def types(self):
        self.cur.execute("SELECT * FROM Types ORDER BY Id")
        table = self.cur.fetch_arrow_table()
        names = [str(f.type) for f in table.schema]
        assert names == ["int64", "bool", "double", "decimal128(38, 9)", "string", "binary", "date32[day]", "timestamp[ns, tz=UTC]",
                         "extension<arrow.json>", "extension<arrow.uuid>", "list<item: string>"], names
        row = table.to_pylist()[0]
        assert row["Name"] == "ÿ" and row["Data"] == b"\x00\xff" and row["Tags"] == ["x", None], row
        assert table.column("Stamp")[0].value == 1709168523000000004, row
        assert polars.read_database("SELECT Id, Name, Price FROM Types ORDER BY Id", self.conn).shape == (3, 3)
        assert list(pandas.read_sql("SELECT Id FROM Types ORDER BY Id", self.conn)["Id"]) == [1, 2, 3]

    def parameters(self):
        assert self.rows("SELECT Name FROM Types WHERE Id = ? AND Name = ?", 2, "two") == [("two",)]
        assert self.rows("SELECT Id FROM Types WHERE Name IS NULL OR Id < @id ORDER BY Id", 2) == [(1,), (3,)]

    def bulk(self):
        data = pyarrow.table({"k": range(50_000), "text": ["row %d" % i for i in range(50_000)]})
        conn = connect(self.database, primary_key="k")
        with conn.cursor() as cur:
            assert cur.adbc_ingest("Loaded", data, mode="create") == 50_000
            assert cur.adbc_ingest("Loaded", pyarrow.table({"k": [-1], "text": ["more"]}), mode="append") == 1
        conn.close()
        assert self.rows("SELECT COUNT(*), MIN(k) FROM Loaded") == [(50_001, -1)]

    def engines(self):
        """DuckDB, polars and pandas compute on the columns as they come."""
        self.cur.execute("SELECT k, text FROM Loaded")
        loaded = self.cur.fetch_record_batch()
        assert duckdb.sql("SELECT count(*), min(k), max(text) FROM loaded").fetchall() == [(50_001, -1, "row 9999")]
        frame = polars.read_database("SELECT k, text FROM Loaded", self.conn)
        assert frame.filter(polars.col("k") >= 49_000).select(polars.len(), polars.col("k").sum()).row(0) == (1000, 49_499_500), frame
        frame = pandas.read_sql("SELECT k, text FROM Loaded", self.conn)
        assert frame[frame.text == "more"].k.tolist() == [-1] and len(frame) == 50_001, frame

    def partitions(self):
        parts, _ = self.cur.adbc_execute_partitions("SELECT k FROM Loaded")
        assert len(parts) == 3, len(parts)

        def read(part):
            with connect(self.database) as conn, conn.cursor() as cur:
                cur.adbc_read_partition(part)
                return cur.fetch_arrow_table().column("k").to_pylist()

        with concurrent.futures.ThreadPoolExecutor() as pool:
            keys = [k for part in pool.map(read, parts) for k in part]
        assert sorted(keys) == list(range(-1, 50_000)), len(keys)

    def transactions(self):
        with connect(self.database, autocommit=False) as conn:
            for end, want in (conn.rollback, 3), (conn.commit, 4):
                with conn.cursor() as cur:
                    cur.execute("INSERT INTO Types (Id) VALUES (10)")
                    cur.execute("SELECT COUNT(*) FROM Types")
                    assert cur.fetchone() == (4,)
                end()
                assert self.rows("SELECT COUNT(*) FROM Types") == [(want,)]

    def prepared(self):
        """A cursor keeps its prepared statement over the ends of transactions, and runs it in the one that is open."""
        count = "SELECT COUNT(*) FROM Types WHERE Id >= 100"
        insert, update = "INSERT INTO Types (Id, Name) VALUES (?, ?)", "UPDATE Types SET Name = 'again' WHERE Id = ?"
        with connect(self.database, autocommit=False) as conn, conn.cursor() as one, conn.cursor() as two:
            for first, end, inside, outside in (100, conn.commit, 2, 2), (102, conn.rollback, 4, 2), (102, conn.commit, 4, 4), (104, conn.rollback, 6, 4):
                one.executemany(insert, [(first, "a"), (first + 1, "b")])
                two.execute(update, (first,))
                assert two.rowcount == 1, two.rowcount
                with conn.cursor() as cur:
                    cur.execute(count)
                    assert cur.fetchone() == (inside,), first
                end()
                assert self.rows(count) == [(outside,)], first
            for _ in range(2):
                two.execute(count)
                assert two.fetchone() == (4,)
                conn.commit()
        self.cur.execute("DELETE FROM Types WHERE Id >= 100")

    def bulk_in_transaction(self):
        """The driver sends no transaction with a bulk load: it is committed whatever becomes of the transaction."""
        with connect(self.database, autocommit=False) as conn, conn.cursor() as cur:
            assert cur.adbc_ingest("Loaded", pyarrow.table({"k": [-2], "text": ["at once"]}), mode="append") == 1
            conn.rollback()
        assert self.rows("SELECT text FROM Loaded WHERE k = -2") == [("at once",)]
        self.cur.execute("DELETE FROM Loaded WHERE k = -2")

    def metadata(self):
        assert self.conn.adbc_get_info()["vendor_name"] == "Crowfoot"
        assert self.conn.adbc_get_table_schema("Loaded").names == ["k", "text"]
        assert "BASE TABLE" in self.conn.adbc_get_table_types()
        objects = self.conn.adbc_get_objects(depth="tables", table_name_filter="Loaded").read_all().to_pylist()
        assert [t["table_name"] for s in objects[0]["catalog_db_schemas"] for t in s["db_schema_tables"] or []] == ["Loaded"], objects

    def errors(self):
        for sql, text in ("SELECT Nothing FROM Types", "INVALID_ARGUMENT: [FlightSQL] Unrecognized name: Nothing"), (
            "INSERT INTO Types (Id) VALUES (1)", "ALREADY_EXISTS: [FlightSQL] Table Types: Row {Int64(1)} already exists"):
            try:
                self.cur.execute(sql)
            except adbc_driver_manager.Error as e:
                assert text in str(e), e
            else:
                raise AssertionError("no error: " + sql)

    def drop(self):
        for table in "Types", "Loaded":
            self.cur.execute("DROP TABLE " + table)
        self.cur.close()
        self.conn.close()


def main():
    app = App(sys.argv[1])
    of_app = (app.schema, app.updates, app.types, app.parameters, app.bulk, app.engines, app.partitions, app.transactions, app.prepared, app.bulk_in_transaction, app.metadata, app.errors, app.drop)
    steps.run("flight", {step.__name__: step for step in of_app})


main()
