// What all files of tests share: a server and a client of it for the whole file, topics with
// subscriptions, and ways to wait.
//
//   useServer();                                   // once, at the top of the file
//   test('...', options, async () => {
//     const {topic, subscription} = await pair({ackDeadlineSeconds: 1});
//     receive(subscription, message => message.ack());
//     await publish(topic, 'hello', 'key');
//     await until('one', () => got.length === 1);
//   });
import assert from 'node:assert/strict';
import {after, before} from 'node:test';

import {PubSub, v1} from '@google-cloud/pubsub';
import {credentials} from '@grpc/grpc-js';

import {Server} from './server.mjs';

export const options = {timeout: 200_000};
export let server;
export let pubsub;

let serial = 0;
const opened = [];

export const unique = word => `${word}-${++serial}`;
export const pause = span => new Promise(resolve => setTimeout(resolve, span));
export const text = message => message.data.toString();
export const hasCode = code => error => error.code === code;

// With more options for the client.
export function useServer(more = {}) {
  before(async () => {
    server = await Server.start();
    pubsub = new PubSub({projectId: 'test', ...more});
  });
  after(async () => {
    await Promise.all(opened.map(client => client.close()));
    await pubsub.close();
    assert.equal(await server.stop(), 0);
  });
}

// Resolves when `condition()` is true; fails when it still is not after a generous time.
export async function until(what, condition, limit = 60_000) {
  const end = Date.now() + limit;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await pause(5);
  }
}

// A topic with an ordered subscription. The client acknowledges at once: by default it collects acks
// for 100 ms, and a key goes on with the ack.
export async function pair(settings = {}, client = {}) {
  const [topic] = await pubsub.createTopic(unique('topic'));
  const name = unique('subscription');
  await topic.createSubscription(name, {enableMessageOrdering: true, ...settings});
  const subscription =
      pubsub.subscription(name, {batching: {maxMilliseconds: 0}, ...client});
  opened.push(subscription);
  return {topic: pubsub.topic(topic.name, {messageOrdering: true}), subscription};
}

export const publish = (topic, data, orderingKey, attributes = {}) =>
  topic.publishMessage({data: Buffer.from(data), attributes, ...(orderingKey ? {orderingKey} : {})});

// Calls `handle` for each message; what goes wrong with the stream fails the test.
export function receive(subscription, handle) {
  subscription.on('message', handle);
  subscription.on('error', error => {
    throw error;
  });
}

// The generated clients under the friendly one, for calls that it does not make.
function lowLevel(Client) {
  const client = new Client({
    apiEndpoint: '127.0.0.1', port: server.port, sslCreds: credentials.createInsecure(),
    projectId: 'test',
  });
  opened.push(client);
  return client;
}
export const subscriberClient = () => lowLevel(v1.SubscriberClient);
export const publisherClient = () => lowLevel(v1.PublisherClient);
