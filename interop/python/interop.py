"""A small application on the official Python client: schema, writes, reads, transactions, partitions, staleness."""

import concurrent.futures
import datetime
import decimal
import time

from google.api_core import exceptions
from google.cloud import spanner
from google.cloud.spanner_v1 import param_types

import steps

TABLES = [
    """CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(100),
       Updated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (SingerId)""",
    """CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX), Budget NUMERIC,
       Tags ARRAY<STRING(MAX)>) PRIMARY KEY (SingerId, AlbumId), INTERLEAVE IN PARENT Singers ON DELETE CASCADE""",
]
MORE = [
    "CREATE INDEX SingersByName ON Singers(Name) STORING (Updated)",
    "CREATE TABLE Counters (Name STRING(20) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Name)",
]


class App:
    def __init__(self):
        self.client = spanner.Client(project="interop")
        self.instance = None
        self.db = None

    def schema(self):
        config = next(iter(self.client.list_instance_configs()))
        self.instance = self.client.instance("python-%d" % (time.time_ns() // 1000), config.name, node_count=1, display_name="interop")
        self.instance.create().result(60)
        self.instance.reload()
        self.db = self.instance.database("app", ddl_statements=TABLES)
        self.db.create().result(60)
        self.db.update_ddl(MORE).result(60)
        self.db.reload()
        assert len(self.db.ddl_statements) == 4, self.db.ddl_statements

    def mutations(self):
        with self.db.batch() as batch:
            batch.insert("Singers", ("SingerId", "Name", "Updated"),
                         [(i, "singer %d" % i, spanner.COMMIT_TIMESTAMP) for i in range(1, 21)])
            batch.insert("Albums", ("SingerId", "AlbumId", "Title", "Budget", "Tags"),
                         [(i, 1, "album %d" % i, decimal.Decimal("12.5"), ["a", None, "c"]) for i in range(1, 21)])
            batch.insert_or_update("Counters", ("Name", "N"), [("c", 0)])
        with self.db.snapshot() as snapshot:
            (row,) = snapshot.read("Singers", ("Name", "Updated"), spanner.KeySet(keys=[[7]]))
        assert row[0] == "singer 7" and row[1] == batch.committed, (row, batch.committed)

    def mutation_groups(self):
        with self.db.mutation_groups() as groups:
            for i in (201, 202):
                groups.group().insert("Singers", ("SingerId", "Name"), [(i, "group")])
            responses = list(groups.batch_write())
        assert all(r.status.code == 0 for r in responses), responses
        self.count("SELECT COUNT(*) FROM Singers WHERE Name = 'group'", 2)
        self.db.run_in_transaction(lambda tx: tx.execute_update("DELETE FROM Singers WHERE Name = 'group'"))

    def count(self, sql, want):
        with self.db.snapshot() as snapshot:
            got = list(snapshot.execute_sql(sql))[0][0]
        assert got == want, (sql, got, want)

    def dml(self):
        def work(tx):
            n = tx.execute_update("INSERT INTO Singers (SingerId, Name) VALUES (@id, @name)",
                                  params={"id": 100, "name": "by dml"},
                                  param_types={"id": param_types.INT64, "name": param_types.STRING})
            assert n == 1, n
            assert list(tx.execute_sql("SELECT Name FROM Singers WHERE SingerId = 100")) == [["by dml"]]

        self.db.run_in_transaction(work)

        def back(tx):
            return list(tx.execute_sql("UPDATE Singers SET Name = 'changed' WHERE SingerId = 100 THEN RETURN Name"))

        assert self.db.run_in_transaction(back) == [["changed"]]

    def batch_dml(self):
        def work(tx):
            return tx.batch_update([
                "INSERT INTO Singers (SingerId, Name) VALUES (101, 'x')",
                "UPDATE Singers SET Name = 'y' WHERE SingerId IN (100, 101)",
                "DELETE FROM Singers WHERE SingerId = 101",
            ])

        status, counts = self.db.run_in_transaction(work)
        assert status.code == 0 and list(counts) == [1, 2, 1], (status, counts)

        def broken(tx):
            return tx.batch_update(["UPDATE Singers SET Name = 'z' WHERE SingerId = 100", "UPDATE Nowhere SET x = 1 WHERE true"])

        status, counts = self.db.run_in_transaction(broken)
        assert status.code == 3 and list(counts) == [1], (status, counts)

    def read(self):
        with self.db.snapshot(multi_use=True) as snapshot:
            rows = list(snapshot.read("Albums", ("SingerId", "Title", "Budget", "Tags"),
                                      spanner.KeySet(ranges=[spanner.KeyRange(start_closed=[3], end_open=[6])])))
            assert [r[0] for r in rows] == [3, 4, 5], rows
            assert rows[0][2] == decimal.Decimal("12.5") and rows[0][3] == ["a", None, "c"], rows[0]
            rows = list(snapshot.read("Singers", ("SingerId",), spanner.KeySet(keys=[["singer 9"]]), index="SingersByName"))
            assert rows == [[9]], rows

    def query(self):
        with self.db.snapshot() as snapshot:
            rows = list(snapshot.execute_sql(
                "SELECT s.SingerId, a.Title FROM Singers s JOIN Albums a USING (SingerId) WHERE s.SingerId IN UNNEST(@ids) ORDER BY s.SingerId",
                params={"ids": [2, 4, 999]}, param_types={"ids": param_types.Array(param_types.INT64)}))
        assert rows == [[2, "album 2"], [4, "album 4"]], rows

    def errors(self):
        def insert():
            with self.db.batch() as batch:
                batch.insert("Singers", ("SingerId",), [(1,)])

        def read(sql):
            with self.db.snapshot() as snapshot:
                list(snapshot.execute_sql(sql))

        expect(exceptions.AlreadyExists, insert)
        expect(exceptions.InvalidArgument, lambda: read("SELECT nothing FROM Singers"))
        expect(exceptions.InvalidArgument, lambda: read("SELECT * FROM Nowhere"))

    def contention(self):
        def add(tx):
            n = list(tx.read("Counters", ("N",), spanner.KeySet(keys=[["c"]])))[0][0]
            tx.update("Counters", ("Name", "N"), [("c", n + 1)])

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for f in [pool.submit(self.db.run_in_transaction, add) for _ in range(40)]:
                f.result(60)
        self.count("SELECT N FROM Counters WHERE Name = 'c'", 40)

    def partitioned_query(self):
        snapshot = self.db.batch_snapshot()
        seen = []
        for batch in snapshot.generate_query_batches("SELECT SingerId FROM Albums"):
            seen += [row[0] for row in snapshot.process_query_batch(batch)]
        assert sorted(seen) == list(range(1, 21)), seen
        rows = []
        for batch in snapshot.generate_read_batches("Singers", ("SingerId",), spanner.KeySet(all_=True)):
            rows += list(snapshot.process_read_batch(batch))
        assert len(rows) == 21, rows
        snapshot.close()

    def partitioned_dml(self):
        assert self.db.execute_partitioned_dml("UPDATE Albums SET Title = 'same' WHERE AlbumId = 1") >= 20

    def staleness(self):
        keys = spanner.KeySet(keys=[["c"]])
        with self.db.snapshot(multi_use=True) as snapshot:
            list(snapshot.read("Counters", ("N",), keys))
            before = snapshot._transaction_read_timestamp
        if before is None:
            before = datetime.datetime.now(datetime.timezone.utc)
            time.sleep(0.01)
        with self.db.batch() as batch:
            batch.update("Counters", ("Name", "N"), [("c", 1000)])
        for options, want in [
            ({"read_timestamp": before}, [[40]]),
            ({}, [[1000]]),
            ({"min_read_timestamp": batch.committed}, [[1000]]),
        ]:
            with self.db.snapshot(**options) as snapshot:
                got = list(snapshot.read("Counters", ("N",), keys))
            assert got == want, (options, got, want)
        # Then there was no such table; Singers is one that the database was created with.
        with self.db.snapshot(exact_staleness=datetime.timedelta(minutes=30)) as snapshot:
            expect(exceptions.NotFound, lambda: list(snapshot.read("Counters", ("N",), keys)))
        with self.db.snapshot(exact_staleness=datetime.timedelta(minutes=30)) as snapshot:
            got = list(snapshot.read("Singers", ("SingerId",), spanner.KeySet(all_=True)))
        assert got == [], got

    def drop(self):
        self.db.drop()
        assert not self.db.exists()


def expect(error, call):
    try:
        call()
    except error:
        return
    raise AssertionError("no %s" % error.__name__)


def main():
    app = App()
    of_app = (app.schema, app.mutations, app.mutation_groups, app.dml, app.batch_dml, app.read, app.query, app.errors,
              app.contention, app.partitioned_query, app.partitioned_dml, app.staleness, app.drop)
    steps.run("python", {step.__name__.replace("_", " "): step for step in of_app})


main()
