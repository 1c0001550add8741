// TypeORM on the official Node client: tables from entities, rows, and dropSchema, whose DDL runs while a transaction is open.
'use strict';
require('reflect-metadata');
const {Spanner} = require('@google-cloud/spanner');
const {DataSource, EntitySchema} = require('typeorm');

const projectId = 'interop';
const instanceId = `typeorm-${process.pid}`;
const databaseId = 'app';

const Singer = new EntitySchema({
  name: 'Singer',
  tableName: 'singers',
  columns: {id: {type: 'string', length: 36, primary: true}, name: {type: 'string', length: 100}},
  indices: [{name: 'singers_by_name', columns: ['name']}],
});

let failed = 0;
let passed = 0;
async function step(name, run) {
  try {
    await run();
    passed++;
    console.log(`ok   typeorm ${name}`);
  } catch (e) {
    failed++;
    console.log(`FAIL typeorm ${name}: ${e.message}`);
  }
}

async function main() {
  const spanner = new Spanner({projectId});
  const [instance, operation] = await spanner.createInstance(instanceId, {config: 'emulator-config', nodes: 1, displayName: instanceId});
  await operation.promise();
  const [, made] = await instance.createDatabase(databaseId);
  await made.promise();
  const source = new DataSource({type: 'spanner', projectId, instanceId, databaseId, entities: [Singer]});
  await step('connect', () => source.initialize());
  await step('synchronize', () => source.synchronize());
  await step('rows', async () => {
    await source.getRepository('Singer').save([{id: '1', name: 'Ann'}, {id: '2', name: 'Bob'}]);
    const found = await source.getRepository('Singer').findOneBy({name: 'Bob'});
    if (!found || String(found.id) !== '2') throw new Error(`found ${JSON.stringify(found)}`);
  });
  await step('drop schema', () => source.dropDatabase());
  await step('synchronize again', () => source.synchronize(true));
  await source.destroy();
  spanner.close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

main();
