// Push subscriptions, made and changed by the official client: what their endpoint gets.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {test} from 'node:test';

import {hasCode, options, pair, publish, text, until, useServer} from './rig.mjs';

useServer();

const INVALID_ARGUMENT = 3;
const FAILED_PRECONDITION = 9;

// An endpoint. `answer(push)` gives the status.
async function endpoint(answer = () => 204) {
  const pushes = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', chunk => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const isJson = request.headers['content-type'] === 'application/json';
      const push = {url: request.url, headers: request.headers, body, ...(isJson ? JSON.parse(body) : {})};
      if (push.message) push.text = Buffer.from(push.message.data, 'base64').toString();
      pushes.push(push);
      response.writeHead(answer(push)).end();
    });
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    pushes,
    url: path => `http://127.0.0.1:${server.address().port}${path}`,
    close: () => {
      server.closeAllConnections?.();
      server.close();
    },
  };
}

test('what is published is posted to the endpoint, in order within a key', options, async () => {
  const receiver = await endpoint();
  const {topic, subscription} = await pair({pushEndpoint: receiver.url('/orders')});
  const ids = [];
  for (const data of ['first', 'second', 'third'])
    ids.push(await publish(topic, data, 'k', {colour: 'red'}));
  await until('three', () => receiver.pushes.length >= 3);
  assert.deepEqual(receiver.pushes.map(push => push.text), ['first', 'second', 'third']);
  assert.deepEqual(receiver.pushes.map(push => push.message.messageId), ids);
  const {url, message, subscription: name} = receiver.pushes[0];
  assert.equal(url, '/orders');
  assert.equal(name, subscription.name);
  assert.equal(message.message_id, ids[0]);
  assert.equal(message.orderingKey, 'k');
  assert.deepEqual(message.attributes, {colour: 'red'});
  assert.ok(Math.abs(new Date(message.publishTime) - Date.now()) < 600_000);
  assert.equal(message.publish_time, message.publishTime);
  receiver.close();
});

test('a message that is refused comes again before the next of its key', options, async () => {
  let refusals = 2;
  const receiver = await endpoint(push => (push.text === 'first' && refusals-- > 0 ? 503 : 200));
  const {topic} = await pair({pushEndpoint: receiver.url('/')});
  await publish(topic, 'first', 'k');
  await publish(topic, 'second', 'k');
  await until('four', () => receiver.pushes.length >= 4);
  assert.deepEqual(receiver.pushes.map(push => push.text), ['first', 'first', 'first', 'second']);
  receiver.close();
});

test('the settings are given back, and a subscription goes to pull and back', options, async () => {
  const receiver = await endpoint();
  const {topic, subscription} = await pair({pushConfig: {pushEndpoint: receiver.url('/a')}});
  const [made] = await subscription.getMetadata();
  assert.equal(made.pushConfig.pushEndpoint, receiver.url('/a'));
  await assert.rejects(
    new Promise((resolve, reject) => {
      subscription.on('message', resolve);
      subscription.on('error', reject);
    }),
    hasCode(FAILED_PRECONDITION));
  await subscription.close();

  await subscription.modifyPushConfig({pushEndpoint: ''});
  const got = [];
  const puller = topic.subscription(subscription.name);
  puller.on('message', message => {
    got.push(text(message));
    message.ack();
  });
  await publish(topic, 'pulled');
  await until('one pulled', () => got.length === 1);
  await puller.close();

  await subscription.modifyPushConfig({pushEndpoint: receiver.url('/b'), noWrapper: {writeMetadata: true}});
  await publish(topic, 'bare', 'k', {colour: 'red'});
  await until('one pushed', () => receiver.pushes.length === 1);
  const [push] = receiver.pushes;
  assert.equal(push.url, '/b');
  assert.equal(push.body, 'bare');
  assert.equal(push.headers.colour, 'red');
  assert.equal(push.headers['x-goog-pubsub-ordering-key'], 'k');
  receiver.close();
});

test('an endpoint that cannot be reached safely is refused', options, async () => {
  await assert.rejects(pair({pushEndpoint: 'https://example.com/'}), hasCode(INVALID_ARGUMENT));
  await assert.rejects(pair({pushEndpoint: 'example.com'}), hasCode(INVALID_ARGUMENT));
});
