// The server under test as a child: `ordo serve`, started before the tests of a file, stopped after
// them.
//
//   const server = await Server.start();       // ORDO_PROGRAM names the program
//   const pubsub = new PubSub({projectId: 'test'});
//   await server.crash();                      // SIGKILL, and a new one on the same port and data
//   await server.stop();                       // SIGTERM; gives the exit status
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtemp, rm} from 'node:fs/promises';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';

// A port below those that the kernel gives to clients: a client that tries again and again to reach a
// server that is down may be given its port, and then talks to itself.
async function freePort() {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const listener = createServer().listen(port, '127.0.0.1');
    const isFree = await once(listener, 'listening').then(() => true, () => false);
    if (!isFree) continue;
    listener.close();
    await once(listener, 'close');
    return port;
  }
}

export class Server {
  static async start() {
    const server = new Server();
    server.directory = await mkdtemp(join(tmpdir(), 'ordo-conformance-'));
    server.port = await freePort();
    await server.run();
    process.env.PUBSUB_EMULATOR_HOST = `127.0.0.1:${server.port}`;
    return server;
  }

  async run() {
    const words = ['serve', '--listen', `127.0.0.1:${this.port}`, '--data', join(this.directory, 'data'),
      '--min-ack-deadline', '1s'];
    this.child = spawn(process.env.ORDO_PROGRAM, words, {stdio: ['ignore', 'pipe', 'inherit']});
    this.exited = once(this.child, 'exit');
    const lines = createInterface({input: this.child.stdout});
    const isReady = await new Promise(resolve => {
      lines.on('line', line => {
        if (line.includes('PUBSUB_EMULATOR_HOST')) resolve(true);
      });
      lines.on('close', () => resolve(false));
    });
    if (!isReady) throw new Error('the server did not start');
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  // Ends it without a word, and starts it again on the same port and data.
  async crash() {
    await this.kill();
    await this.run();
  }

  // Ends it as an operator does, and starts it again.
  async restart() {
    this.child.kill('SIGTERM');
    await this.exited;
    await this.run();
  }

  async stop() {
    this.child.kill('SIGTERM');
    const [code] = await this.exited;
    await rm(this.directory, {recursive: true, force: true});
    return code;
  }
}
