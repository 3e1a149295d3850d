// Messages through the official Node client: what may be published, how it is delivered, delivered
// again, and brought back.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {PubSub} from '@google-cloud/pubsub';

import {
  hasCode, options, pair, pause, publish, publisherClient, pubsub, receive, server, subscriberClient,
  text, unique, until, useServer,
} from './rig.mjs';

useServer();

const kInvalidArgument = 3;

// Acknowledges everything and keeps it.
function keep(subscription) {
  const got = [];
  receive(subscription, message => {
    got.push(message);
    message.ack();
  });
  return got;
}

// Messages of a pull, as far as they are there.
async function pull(client, subscription, maxMessages = 10) {
  const [response] = await client.pull({subscription: subscription.name, maxMessages});
  return response.receivedMessages;
}

// ---------------------------------------------------------------------------------- publishing

test('a message arrives as it was published', options, async () => {
  const {topic, subscription} = await pair();
  const got = keep(subscription);
  const data = Buffer.from(Array.from({length: 256}, (_, index) => index));
  const attributes = {colour: 'blue', 'ключ': 'значение'};
  const before = Date.now();
  const id = await topic.publishMessage({data, attributes, orderingKey: 'schlüssel'});
  await until('it', () => got.length === 1);
  const [message] = got;
  assert.ok(data.equals(message.data));
  assert.deepEqual(message.attributes, attributes);
  assert.equal(message.orderingKey, 'schlüssel');
  assert.equal(message.id, id);
  assert.equal(message.deliveryAttempt, 0);
  assert.ok(message.publishTime.getTime() >= before - 1000 && message.publishTime.getTime() <= Date.now() + 1000);
});

test('a message may be attributes alone, and not nothing', options, async () => {
  const {topic, subscription} = await pair();
  const got = keep(subscription);
  await topic.publishMessage({attributes: {only: 'this'}});
  await until('it', () => got.length === 1);
  assert.equal(got[0].data.length, 0);
  await assert.rejects(topic.publishMessage({data: Buffer.alloc(0)}), hasCode(kInvalidArgument));
  await assert.rejects(publish(topic, '', 'key'), hasCode(kInvalidArgument));
});

test('what a message may be is bounded, and its refusal definite', options, async () => {
  const {topic, subscription} = await pair();
  const got = keep(subscription);
  const client = publisherClient();
  const one = more => ({data: Buffer.from('x'), ...more});
  const many = count => Object.fromEntries(Array.from({length: count}, (_, index) => [`a${index}`, 'v']));
  const refused = [
    [],
    [one({orderingKey: 'é'.repeat(513)})],
    [one({orderingKey: 'a'}), one({orderingKey: 'b'})],
    [one({attributes: {'': 'v'}})],
    [one({attributes: {'google-something': 'v'}})],
    [one({attributes: {['k'.repeat(257)]: 'v'}})],
    [one({attributes: {k: 'v'.repeat(1025)}})],
    [one({attributes: many(101)})],
    Array.from({length: 1001}, () => one()),
    [one({data: Buffer.alloc(10_000_001)})],
    [one({data: Buffer.alloc(21_000_000)})],  // More than a call takes.
  ];
  for (const messages of refused) {
    await assert.rejects(client.publish({topic: topic.name, messages}), hasCode(kInvalidArgument));
  }
  const taken = [
    [one({orderingKey: 'é'.repeat(512)})],
    [one({attributes: {googclient_x: 'v'}})],
    [one({attributes: {['k'.repeat(256)]: 'v'.repeat(1024)}})],
    [one({attributes: many(100)})],
    Array.from({length: 1000}, () => one()),
  ];
  for (const messages of taken) {
    const [response] = await client.publish({topic: topic.name, messages});
    assert.equal(new Set(response.messageIds).size, messages.length);
  }
  await until('all that was taken', () => got.length >= 1004);
  assert.equal(got.length, 1004);
});

test('the largest message there may be', options, async () => {
  const {topic, subscription} = await pair();
  const got = keep(subscription);
  const data = Buffer.alloc(9_999_000, 'x');
  await topic.publishMessage({data, orderingKey: 'big'});
  await until('it', () => got.length === 1);
  assert.ok(data.equals(got[0].data));
});

test('a batching publisher gets an id for each, rising within a key', options, async () => {
  const {topic, subscription} = await pair();
  const got = keep(subscription);
  const batching = pubsub.topic(topic.name, {
    messageOrdering: true, batching: {maxMessages: 50, maxMilliseconds: 20},
  });
  const ids = await Promise.all(
      Array.from({length: 300}, (_, index) => publish(batching, `${index}`, `key-${index % 3}`)));
  assert.equal(new Set(ids).size, 300);
  for (let index = 3; index < 300; ++index) assert.ok(BigInt(ids[index]) > BigInt(ids[index - 3]));
  await until('all', () => got.length >= 300);
  const byKey = {};
  for (const message of got) (byKey[message.orderingKey] ??= []).push(Number(text(message)));
  for (const list of Object.values(byKey)) assert.deepEqual(list, [...list].sort((a, b) => a - b));
});

test('after a refused message a publisher goes on with its key', options, async () => {
  const {topic, subscription} = await pair();
  const got = keep(subscription);
  await assert.rejects(publish(topic, '', 'k'), hasCode(kInvalidArgument));
  topic.resumePublishing('k');
  await publish(topic, 'next', 'k');
  await until('the next', () => got.length === 1);
  assert.equal(text(got[0]), 'next');
});

// ------------------------------------------------------------------------------------ delivery

test('a key on a subscription that does not order holds up nothing', options, async () => {
  const {topic, subscription} = await pair({enableMessageOrdering: false});
  const held = [];
  receive(subscription, message => held.push(message));
  await Promise.all(['1', '2', '3'].map(data => publish(topic, data, 'k')));
  await until('all, none acknowledged', () => held.length >= 3);
  held.forEach(message => message.ack());
});

test('with a window of five, five of a key are in flight, and a nack rewinds', options, async () => {
  const {topic, subscription} = await pair(
      {labels: {'ordo-ordered-window': '5'}}, {streamingOptions: {maxStreams: 1}});
  for (let index = 0; index < 8; ++index) await publish(topic, `${index}`, 'k');
  const got = [];
  receive(subscription, message => got.push(message));
  await until('five', () => got.length >= 5);
  assert.deepEqual(got.map(text), ['0', '1', '2', '3', '4']);
  got[0].ack();
  got[1].nack();
  await until('the second again', () => got.length >= 6 && text(got.at(-1)) === '1');
  got.at(-1).ack();
  const since = () => got.map(text).slice(got.map(text).lastIndexOf('1'));
  await until('those behind it', () => since().length >= 6);
  assert.deepEqual(since(), ['1', '2', '3', '4', '5', '6']);
  got.forEach(message => message.ack());
});

test('a lease that is extended does not end', options, async () => {
  const {topic, subscription} = await pair({ackDeadlineSeconds: 1});
  const client = subscriberClient();
  await publish(topic, 'long', 'k');
  const modify = (one, ackDeadlineSeconds) => client.modifyAckDeadline(
      {subscription: subscription.name, ackIds: [one.ackId], ackDeadlineSeconds});
  let leased;
  for (let isInTime = false; !isInTime;) {
    const begin = Date.now();
    [leased] = await pull(client, subscription);
    await modify(leased, 600);
    isInTime = Date.now() - begin < 1000;
    if (!isInTime) await modify(leased, 0);  // A slow machine: the lease may have ended before.
  }
  await pause(1500);
  const [response] =
      await client.pull({subscription: subscription.name, maxMessages: 1, returnImmediately: true});
  assert.deepEqual(response.receivedMessages, []);
  await client.acknowledge({subscription: subscription.name, ackIds: [leased.ackId]});
});

test('a late ack frees nothing: the message that came again has to be acknowledged', options, async () => {
  const {topic, subscription} = await pair({ackDeadlineSeconds: 1});
  const client = subscriberClient();
  await publish(topic, 'first', 'k');
  await publish(topic, 'second', 'k');
  const [old] = await pull(client, subscription);
  await subscription.setMetadata({ackDeadlineSeconds: 600});
  const [again] = await pull(client, subscription);
  assert.equal(text(again.message), 'first');
  await client.acknowledge({subscription: subscription.name, ackIds: [old.ackId]});
  const [response] =
      await client.pull({subscription: subscription.name, maxMessages: 1, returnImmediately: true});
  assert.deepEqual(response.receivedMessages, []);
  await client.acknowledge({subscription: subscription.name, ackIds: [again.ackId]});
  assert.deepEqual((await pull(client, subscription)).map(one => text(one.message)), ['second']);
});

test('a retry policy delays what was nacked, and its key with it', options, async () => {
  const {topic, subscription} = await pair(
      {retryPolicy: {minimumBackoff: {seconds: 1}, maximumBackoff: {seconds: 1}}});
  const times = [];
  const got = [];
  receive(subscription, message => {
    times.push(Date.now());
    got.push(text(message));
    if (got.length === 1) message.nack();
    else message.ack();
  });
  await publish(topic, 'first', 'k');
  await publish(topic, 'second', 'k');
  await until('three deliveries', () => got.length >= 3);
  assert.deepEqual(got, ['first', 'first', 'second']);
  assert.ok(times[1] - times[0] >= 900, `${times[1] - times[0]} ms`);
});

test('filters of every form', options, async () => {
  const forms = {
    'attributes:colour': ['red', 'blue', 'bluish'],
    'attributes.colour = "blue"': ['blue'],
    'attributes.colour != "blue"': ['red', 'bluish', 'none'],
    'hasPrefix(attributes.colour, "blu")': ['blue', 'bluish'],
    'NOT attributes:colour': ['none'],
    '(attributes.colour = "red" OR attributes.colour = "blue") AND attributes:size': ['red'],
  };
  const [topic] = await pubsub.createTopic(unique('topic'));
  const seen = {};
  const subscriptions = [];
  for (const filter of Object.keys(forms)) {
    const [subscription] = await topic.createSubscription(unique('filtered'), {filter});
    subscriptions.push(subscription);
    seen[filter] = keep(subscription);
  }
  await publish(topic, 'red', undefined, {colour: 'red', size: '1'});
  await publish(topic, 'blue', undefined, {colour: 'blue'});
  await publish(topic, 'bluish', undefined, {colour: 'bluish'});
  await publish(topic, 'none');
  for (const [filter, wanted] of Object.entries(forms)) {
    await until(filter, () => seen[filter].length >= wanted.length);
    assert.deepEqual(seen[filter].map(text).sort(), [...wanted].sort(), filter);
  }
  await Promise.all(subscriptions.map(one => one.close()));
});

test('bytes are bounded as the client wants', options, async () => {
  const {topic, subscription} = await pair({}, {
    flowControl: {maxBytes: 3000, allowExcessMessages: false}, streamingOptions: {maxStreams: 1},
  });
  const held = [];
  let count = 0;
  let most = 0;
  receive(subscription, message => {
    held.push(message);
    most = Math.max(most, held.length);
    ++count;
  });
  await Promise.all(Array.from({length: 12}, () => topic.publishMessage({data: Buffer.alloc(1000, 'x')})));
  while (count < 12) {
    await until('some', () => held.length > 0);
    held.splice(0).forEach(message => message.ack());
  }
  held.forEach(message => message.ack());
  assert.ok(most <= 4, `${most} were outstanding`);
});

// --------------------------------------------------------------------------------- exactly once

test('exactly once: an ack id that expired is refused, by name', options, async () => {
  const {topic, subscription} = await pair({enableExactlyOnceDelivery: true, ackDeadlineSeconds: 1});
  const client = subscriberClient();
  await publish(topic, 'once', 'k');
  const [old] = await pull(client, subscription);
  const [again] = await pull(client, subscription);
  assert.equal(text(again.message), 'once');
  const ids = [old.ackId, again.ackId];
  await assert.rejects(
      client.acknowledge({subscription: subscription.name, ackIds: ids}), error => {
        assert.equal(error.code, kInvalidArgument);
        assert.equal(error.reason, 'EXACTLY_ONCE_ACKID_FAILURE');
        assert.equal(error.domain, 'pubsub.googleapis.com');
        assert.deepEqual(error.errorInfoMetadata, {[old.ackId]: 'PERMANENT_FAILURE_INVALID_ACK_ID'});
        return true;
      });
  // The other one counted, and counts again without harm.
  await client.acknowledge({subscription: subscription.name, ackIds: [again.ackId]});
});

test('exactly once: thousands of ids that are none are refused in one answer', options, async () => {
  const {subscription} = await pair({enableExactlyOnceDelivery: true});
  const client = subscriberClient();
  const ackIds = Array.from({length: 2500}, (_, index) => `${'not-an-ack-id-of-this-server'.repeat(2)}-${index}`);
  await assert.rejects(client.acknowledge({subscription: subscription.name, ackIds}), error => {
    assert.equal(error.code, kInvalidArgument);
    assert.equal(error.reason, 'EXACTLY_ONCE_ACKID_FAILURE');
    assert.ok(Object.keys(error.errorInfoMetadata).length >= 300);
    return true;
  });
});

test('exactly once: each is acknowledged once, with an answer', options, async () => {
  const {topic, subscription} = await pair({enableExactlyOnceDelivery: true});
  const got = [];
  const answers = [];
  receive(subscription, async message => {
    got.push(text(message));
    answers.push(await message.ackWithResponse());
  });
  await Promise.all(Array.from({length: 50}, (_, index) => publish(topic, `${index}`, `key-${index % 5}`)));
  await until('all answers', () => answers.length >= 50);
  assert.equal(new Set(got).size, 50);
  assert.deepEqual(new Set(answers), new Set(['SUCCESS']));
});

// --------------------------------------------------------------------------------- time travel

test('seek to a time brings back what is kept, and to the future drops what waits', options, async () => {
  const {topic, subscription} = await pair({retainAckedMessages: true});
  const client = subscriberClient();
  const ack = messages => client.acknowledge(
      {subscription: subscription.name, ackIds: messages.map(one => one.ackId)});
  const begin = new Date();
  for (const data of ['1', '2', '3']) await publish(topic, data, 'k');
  const got = [];
  while (got.length < 3) {
    const some = await pull(client, subscription);
    got.push(...some);
    await ack(some);
  }
  await subscription.seek(begin);
  const replayed = [];
  while (replayed.length < 3) {
    const some = await pull(client, subscription);
    replayed.push(...some.map(one => text(one.message)));
    await ack(some);
  }
  assert.deepEqual(replayed, ['1', '2', '3']);
  await publish(topic, 'dropped', 'k');
  await subscription.seek(new Date(Date.now() + 3_600_000));
  await pause(50);
  const [response] =
      await client.pull({subscription: subscription.name, maxMessages: 1, returnImmediately: true});
  assert.deepEqual(response.receivedMessages, []);
});

test('a snapshot keeps what was not acknowledged, and what came later', options, async () => {
  const {topic, subscription} = await pair();
  const client = subscriberClient();
  await publish(topic, 'before', 'k');
  const [snapshot] = await subscription.createSnapshot(unique('snapshot'));
  await publish(topic, 'after', 'k');
  for (let count = 0; count < 2; ++count) {
    const [one] = await pull(client, subscription, 1);
    await client.acknowledge({subscription: subscription.name, ackIds: [one.ackId]});
  }
  await snapshot.seek();
  const replayed = [];
  for (let count = 0; count < 2; ++count) {
    const [one] = await pull(client, subscription, 1);
    replayed.push(text(one.message));
    await client.acknowledge({subscription: subscription.name, ackIds: [one.ackId]});
  }
  assert.deepEqual(replayed, ['before', 'after']);
});

// ------------------------------------------------------------------------------------- restarts

test('a pull without messages ends before the client\'s patience', options, async () => {
  const {subscription} = await pair();
  const client = subscriberClient();
  const request = {subscription: subscription.name, maxMessages: 1};
  const kTooLate = 4;
  // A second is left for the way back, which a slow machine may need once.
  for (let tries = 1;; ++tries) {
    try {
      const [response] = await client.pull(request, {timeout: 2500});
      return assert.deepEqual(response.receivedMessages, []);
    } catch (error) {
      if (error.code !== kTooLate || tries === 5) throw error;
    }
  }
});

test('clients go on after an orderly restart, and what was kept is there', options, async () => {
  const {topic, subscription} = await pair({labels: {kept: 'yes'}});
  await publish(topic, 'before', 'k');
  const got = [];
  const other = new PubSub({projectId: 'test', 'grpc.max_reconnect_backoff_ms': 500});
  const consumer = other.subscription(subscription.name, {batching: {maxMilliseconds: 0}});
  receive(consumer, message => {
    got.push(text(message));
    message.ack();
  });
  await until('one', () => got.length === 1);
  await server.restart();
  await publish(topic, 'after', 'k');
  await until('both', () => got.includes('after'));
  assert.deepEqual([...new Set(got)], ['before', 'after']);
  const [settings] = await subscription.getMetadata();
  assert.deepEqual(settings.labels, {kept: 'yes'});
  await consumer.close();
  await other.close();
});
