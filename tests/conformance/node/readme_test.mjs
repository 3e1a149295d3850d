// The program of the README, run as it stands there, prints what stands there: in the same order per
// key, since keys run side by side.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {promisify} from 'node:util';

import {options, useServer} from './rig.mjs';

useServer();

// The lines of each key: `ann: pay failed` is one of ann's.
function byKey(lines) {
  const keys = {};
  for (const line of lines) (keys[line.split(':')[0]] ??= []).push(line);
  return keys;
}

test('orders.mjs of the README prints what the README says', options, async () => {
  const readme = await readFile(join(process.env.ORDO_SOURCE, 'README.md'), 'utf8');
  const [, program] = readme.match(/```js\n(\/\/ orders\.mjs[^]*?)```/);
  const [, console] = readme.match(/\$ node orders\.mjs\n([^]*?)```/);
  const path = fileURLToPath(new URL('orders.mjs', import.meta.url));
  await writeFile(path, program);
  const {stdout} = await promisify(execFile)(process.execPath, [path], {timeout: 100_000});
  const said = console.trim().split('\n');
  assert.ok(said.length >= 6, console);
  assert.deepEqual(byKey(stdout.trim().split('\n')), byKey(said));
});
