// What clients saw, as a history that tools/check_history.py judges.
//
//   const history = new History({exactly_once: true, subs: {S: {topic: 'T', ordered: true}}});
//   history.add({e: 'crash', t: now()});
//   await history.write('name');       // into the folder that ORDO_HISTORY_DIR names
import {mkdir, writeFile} from 'node:fs/promises';
import {join} from 'node:path';

// Nanoseconds of the clock that never goes back. Times are whole numbers below 2^53 for a hundred days.
export const now = () => Number(process.hrtime.bigint());

export class History {
  constructor(settings) {
    this.events = [{e: 'meta', kind: 'broker', ...settings}];
  }

  add(event) {
    this.events.push(event);
    return event;
  }

  async write(name) {
    const folder = process.env.ORDO_HISTORY_DIR;
    if (!folder) return;
    await mkdir(folder, {recursive: true});
    const lines = this.events.map(event => `${JSON.stringify(event)}\n`);
    await writeFile(join(folder, `${name}.jsonl`), lines.join(''));
  }
}
