// A program on the official Node client that commits again and again while its server is restarted. See interop/restart.
//
// usage: node restart.js DATABASE STOP
// It adds one to its row of table Counters until the file STOP exists, and prints a line after each commit. It fails on any error, and if
// the row does not hold what was committed.
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const {Spanner} = require('@google-cloud/spanner');

const params = {id: 'node'};

async function main(name, stop) {
  const [, projectId, , instance, , database] = name.split('/');
  const db = new Spanner({projectId}).instance(instance).database(database);
  for (let committed = 0; !fs.existsSync(stop); committed++) {
    await db.runTransactionAsync(async tx => {
      const [rows] = await tx.run({sql: 'SELECT N FROM Counters WHERE Id = @id', params, json: true});
      assert.equal(rows[0].N, committed);
      await tx.runUpdate({sql: 'UPDATE Counters SET N = N + 1 WHERE Id = @id', params});
      await tx.commit();
    });
    console.log('committed', committed + 1);
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

main(...process.argv.slice(2)).then(() => process.exit(0), err => {
  console.error(err);
  process.exit(1);
});
