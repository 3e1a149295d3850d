// kill -9 of `ordo serve` under load, again and again: nothing acknowledged to a publisher is lost, no
// key is reordered, and the clients go on by themselves.
//
// ORDO_CRASH_CYCLES sets how often (40). What the clients saw is written as histories, which
// tools/check_history.py judges; see CMakeLists.txt.
//
// Two loads at once. `retrying` is the client as it comes: it publishes again when it does not know
// whether a message was stored, so a message may be there twice. `exact` publishes each once, and
// acknowledges exactly once, with an answer.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Duration} from '@google-cloud/pubsub';

import {History, now} from './history.mjs';
import {pair, pause, publish, pubsub, receive, server, text, until, useServer} from './rig.mjs';

const cycles = Number(process.env.ORDO_CRASH_CYCLES ?? 40);
const keys = ['a', 'b', 'c', 'd', 'e', 'f', ''];

// The client waits longer with each failure, up to a minute; here failures are many and short.
const hasty = {
  initialRetryDelayMillis: 20, retryDelayMultiplier: 1.3, maxRetryDelayMillis: 200,
  initialRpcTimeoutMillis: 60_000, rpcTimeoutMultiplier: 1, maxRpcTimeoutMillis: 60_000,
  totalTimeoutMillis: 600_000,
};

// When one id of a request is stale, this client forgets all messages of that request for which it had
// not yet confirmed the receipt, although they are its own; they come again when their lease ends. That
// lease would be of a minute.
const lease = {minAckDeadline: Duration.from({seconds: 10}), maxAckDeadline: Duration.from({seconds: 10})};

useServer({'grpc.initial_reconnect_backoff_ms': 50, 'grpc.max_reconnect_backoff_ms': 200});

class Load {
  constructor(name, settings) {
    this.name = name;
    this.isExact = settings.enableExactlyOnceDelivery ?? false;
    this.settings = settings;
    this.history = new History({
      exactly_once: this.isExact,
      subs: {S: {topic: 'T', ordered: true, deadline_ms: 10_000}},
    });
    this.stored = new Set();    // What the publisher was told is stored.
    this.delivered = new Set();
    this.isPublishing = true;
  }

  async start() {
    const {topic, subscription} = await pair(this.settings, lease);
    const batching = {maxMilliseconds: 1};
    const retry = this.isExact ? {retryCodes: []} : {backoffSettings: hasty};
    this.topic = pubsub.topic(topic.name, {messageOrdering: true, gaxOpts: {retry}, batching});
    this.subscription = subscription;
    receive(subscription, message => void this.handle(message));
    this.publishers = keys.map(key => this.publishAll(key));
  }

  async publishAll(key) {
    for (let seq = 0; this.isPublishing; ++seq) {
      const uid = `${key}#${seq}`;
      const t0 = now();
      const event = {e: 'pub', p: key, t0, t1: null, res: 'unknown', topic: 'T', uid, key, seq};
      try {
        event.msg_id = await publish(this.topic, uid, key);
        event.t1 = now();
        event.res = 'ok';
        this.stored.add(uid);
      } catch (error) {
        // Whether it was stored is not known; any other code would be a definite answer.
        assert.ok([1, 4, 13, 14].includes(error.code), `${error.code}: ${error.message}`);
        if (key) this.topic.resumePublishing(key);
        await pause(20);
      }
      this.history.add(event);
      await pause(Math.random() * 10);
    }
  }

  async handle(message) {
    const uid = text(message);
    this.history.add({
      e: 'deliver', sub: 'S', c: 'node', t: now(), uid, key: message.orderingKey ?? '',
      ack_id: message.ackId,
    });
    this.delivered.add(uid);
    if (Math.random() < 0.3) await pause(Math.random() * 10);
    await this.settle(message, Math.random() < 0.03 ? 'nack' : 'ack');
  }

  async settle(message, verb) {
    const event = this.history.add(
        {e: verb, sub: 'S', ack_id: message.ackId, t0: now(), t1: null, res: 'unknown'});
    if (!this.isExact) return void message[verb]();
    try {
      await message[`${verb}WithResponse`]();
      event.res = 'ok';
      event.t1 = now();
    } catch {
      // Expired, or not known.
    }
  }

  missing() {
    return [...this.stored].filter(uid => !this.delivered.has(uid));
  }

  async stop() {
    this.isPublishing = false;
    await Promise.all(this.publishers);
  }

  // Nothing has come for a while: what was nacked has come again.
  async settled() {
    for (let count = -1; count !== this.history.events.length;) {
      count = this.history.events.length;
      await pause(500);
    }
  }

  async end() {
    await this.subscription.close();
    this.history.add({e: 'end', t: now(), drained: true});
    await this.history.write(`node_${this.name}`);
  }
}

// All that the dead server has sent has been read and handled.
async function readAll() {
  for (let turn = 0; turn < 50; ++turn) await new Promise(resolve => setImmediate(resolve));
  await pause(10);
}

test(`killed ${cycles} times under load`, {timeout: 550_000}, async () => {
  const loads = [
    new Load('retrying', {}),
    new Load('exact', {enableExactlyOnceDelivery: true}),
  ];
  await Promise.all(loads.map(load => load.start()));
  for (let cycle = 0; cycle < cycles; ++cycle) {
    const before = loads.map(load => [load.stored.size, load.delivered.size]);
    await until('progress of all clients', () => loads.every((load, index) =>
      load.stored.size > before[index][0] + 5 && load.delivered.size > before[index][1] + 5));
    await pause(Math.random() * 100);
    await server.kill();
    await readAll();
    loads.forEach(load => load.history.add({e: 'crash', t: now()}));
    await server.run();
    loads.forEach(load => load.history.add({e: 'start', t: now()}));
  }
  await Promise.all(loads.map(load => load.stop()));
  try {
    await until('everything that was stored', () => loads.every(load => load.missing().length === 0));
    await Promise.all(loads.map(load => load.settled()));
  } finally {
    for (const load of loads) await load.end();
  }
});
