// The server under test as a child: started before the tests of a file, stopped after them.
//
//   const server = await Server.start();       // ORDO_PUBSUB_SERVER names the program
//   const pubsub = new PubSub({projectId: 'test'});
//   await server.stop();                       // SIGTERM; kill() is SIGKILL
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';

export class Server {
  static async start() {
    const server = new Server();
    server.directory = await mkdtemp(join(tmpdir(), 'ordo-conformance-'));
    await server.run(0);
    process.env.PUBSUB_EMULATOR_HOST = `127.0.0.1:${server.port}`;
    return server;
  }

  async run(port) {
    const words = [String(port), join(this.directory, 'data')];
    this.child = spawn(process.env.ORDO_PUBSUB_SERVER, words, {stdio: ['ignore', 'pipe', 'inherit']});
    this.exited = once(this.child, 'exit');
    const [line] = await once(createInterface({input: this.child.stdout}), 'line');
    this.port = Number(line);
  }

  // Ends it without a word, and starts it again on the same port and data.
  async crash() {
    this.child.kill('SIGKILL');
    await this.exited;
    await this.run(this.port);
  }

  async stop() {
    this.child.kill('SIGTERM');
    const [code] = await this.exited;
    await rm(this.directory, {recursive: true, force: true});
    return code;
  }
}

export const patience = 30_000;

// Resolves when `condition()` is true; fails when it still is not after a generous time.
export async function until(what, condition, limit = patience) {
  const end = Date.now() + limit;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}
