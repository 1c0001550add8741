// A small application on the official Node client: schema, writes, reads, transactions, partitions, staleness.
'use strict';
const assert = require('node:assert/strict');
const {Spanner} = require('@google-cloud/spanner');

const spanner = new Spanner({projectId: 'interop'});
const instanceId = `node-${Date.now()}`;
let instance;
let db;

const rowsOf = result => result[0].map(r => r.toJSON());

const steps = {
  async schema() {
    const [configs] = await spanner.getInstanceConfigs();
    let operation;
    [instance, operation] = await spanner.createInstance(instanceId, {config: configs[0].name, nodes: 1, displayName: 'interop'});
    await operation.promise();
    [db, operation] = await instance.createDatabase('app', {
      schema: [
        `CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(100),
         Updated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (SingerId)`,
        `CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX), Budget NUMERIC,
         Tags ARRAY<STRING(MAX)>) PRIMARY KEY (SingerId, AlbumId), INTERLEAVE IN PARENT Singers ON DELETE CASCADE`,
      ],
    });
    await operation.promise();
    [operation] = await db.updateSchema([
      'CREATE INDEX SingersByName ON Singers(Name) STORING (Updated)',
      'CREATE TABLE Counters (Name STRING(20) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Name)',
    ]);
    await operation.promise();
    const [statements] = await db.getSchema();
    assert.equal(statements.length, 4);
  },

  async mutations() {
    const ids = Array.from({length: 20}, (_, i) => i + 1);
    await db.table('Singers').insert(
      ids.map(i => ({SingerId: i, Name: `singer ${i}`, Updated: Spanner.COMMIT_TIMESTAMP})));
    await db.table('Albums').insert(
      ids.map(i => ({SingerId: i, AlbumId: 1, Title: `album ${i}`, Budget: Spanner.numeric('12.5'), Tags: ['a', null, 'c']})));
    await db.table('Counters').upsert({Name: 'c', N: 0});
    const [rows] = await db.table('Singers').read({keys: ['7'], columns: ['Name', 'Updated'], json: true});
    assert.equal(rows[0].Name, 'singer 7');
    assert.ok(rows[0].Updated instanceof Date || rows[0].Updated.toISOString);
  },

  async dml() {
    await db.runTransactionAsync(async tx => {
      const [n] = await tx.runUpdate({sql: 'INSERT INTO Singers (SingerId, Name) VALUES (@id, @name)', params: {id: 100, name: 'by dml'}});
      assert.equal(n, 1);
      assert.deepEqual(rowsOf(await tx.run('SELECT Name FROM Singers WHERE SingerId = 100')), [{Name: 'by dml'}]);
      await tx.commit();
    });
    await db.runTransactionAsync(async tx => {
      const rows = rowsOf(await tx.run("UPDATE Singers SET Name = 'changed' WHERE SingerId = 100 THEN RETURN Name"));
      assert.deepEqual(rows, [{Name: 'changed'}]);
      await tx.commit();
    });
  },

  async 'batch dml'() {
    await db.runTransactionAsync(async tx => {
      const [counts] = await tx.batchUpdate([
        "INSERT INTO Singers (SingerId, Name) VALUES (101, 'x')",
        "UPDATE Singers SET Name = 'y' WHERE SingerId IN (100, 101)",
        'DELETE FROM Singers WHERE SingerId = 101',
      ]);
      assert.deepEqual(counts, [1, 2, 1]);
      await tx.commit();
    });
  },

  async read() {
    const [rows] = await db.table('Albums').read({
      columns: ['SingerId', 'Title', 'Budget', 'Tags'],
      ranges: [{startClosed: ['3'], endOpen: ['6']}],
      json: true,
    });
    assert.deepEqual(rows.map(r => r.SingerId), [3, 4, 5]);
    assert.equal(rows[0].Budget.value, '12.5');
    assert.deepEqual(rows[0].Tags, ['a', null, 'c']);
    const [byName] = await db.table('Singers').read({columns: ['SingerId'], keys: ['singer 9'], index: 'SingersByName', json: true});
    assert.deepEqual(byName, [{SingerId: 9}]);
  },

  async query() {
    const rows = rowsOf(await db.run({
      sql: 'SELECT s.SingerId, a.Title FROM Singers s JOIN Albums a USING (SingerId) WHERE s.SingerId IN UNNEST(@ids) ORDER BY s.SingerId',
      params: {ids: [2, 4, 999]},
      types: {ids: {type: 'array', child: 'int64'}},
    }));
    assert.deepEqual(rows, [{SingerId: 2, Title: 'album 2'}, {SingerId: 4, Title: 'album 4'}]);
  },

  async errors() {
    await assert.rejects(db.table('Singers').insert({SingerId: 1}), {code: 6});
    await assert.rejects(db.run('SELECT nothing FROM Singers'), {code: 3});
    await assert.rejects(db.table('Nowhere').read({keys: ['1'], columns: ['x']}), {code: 5});
  },

  async contention() {
    const add = () => db.runTransactionAsync(async tx => {
      const [rows] = await tx.read('Counters', {keys: ['c'], columns: ['N'], json: true});
      tx.update('Counters', {Name: 'c', N: rows[0].N + 1});
      await tx.commit();
    });
    for (let i = 0; i < 4; i++) {
      await Promise.all(Array.from({length: 8}, add));
    }
    assert.deepEqual(rowsOf(await db.run("SELECT N FROM Counters WHERE Name = 'c'")), [{N: 32}]);
  },

  async 'partitioned query'() {
    const [tx] = await db.createBatchTransaction();
    const [queries] = await tx.createQueryPartitions({sql: 'SELECT SingerId FROM Albums'});
    let seen = [];
    for (const p of queries) {
      seen = seen.concat(rowsOf(await tx.execute(p)).map(r => r.SingerId));
    }
    assert.deepEqual(seen.sort((a, b) => a - b), Array.from({length: 20}, (_, i) => i + 1));
    const [reads] = await tx.createReadPartitions({table: 'Singers', columns: ['SingerId'], keySet: {all: true}});
    let rows = 0;
    for (const p of reads) {
      rows += (await tx.execute(p))[0].length;
    }
    assert.equal(rows, 21);
    await tx.close();
  },

  async 'partitioned dml'() {
    const [n] = await db.runPartitionedUpdate({sql: "UPDATE Albums SET Title = 'same' WHERE AlbumId = 1"});
    assert.ok(n >= 20, `updated ${n}`);
  },

  async staleness() {
    const read = async (bounds, table = 'Counters', query = {keys: ['c'], columns: ['N'], json: true}) => {
      const [tx] = await db.getSnapshot(bounds);
      const [rows] = await tx.read(table, query);
      tx.end();
      return [rows.map(r => r.N), tx.readTimestamp];
    };
    const [first, at] = await read({strong: true, returnReadTimestamp: true});
    assert.deepEqual(first, [32]);
    await db.table('Counters').update({Name: 'c', N: 1000});
    assert.deepEqual((await read({readTimestamp: at}))[0], [32]);
    assert.deepEqual((await read({strong: true}))[0], [1000]);
    // Then there was no such table; Singers is one that the database was created with.
    await assert.rejects(read({exactStaleness: {seconds: 1800}}), {code: 5});
    assert.deepEqual((await read({exactStaleness: {seconds: 1800}}, 'Singers', {keys: ['1'], columns: ['SingerId']}))[0], []);
  },

  async drop() {
    await db.delete();
    const [exists] = await instance.database('app').exists();
    assert.equal(exists, false);
  },
};

async function main() {
  let passed = 0;
  let failed = 0;
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      passed++;
      console.log(`ok   node ${name}`);
    } catch (err) {
      failed++;
      console.log(`FAIL node ${name}:`, err);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed > 0 ? 1 : 0);
}

main();
