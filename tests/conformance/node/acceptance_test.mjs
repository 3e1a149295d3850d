// What a user of the official Node client meets: order within a key, and all the rest.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  hasCode, options, pair, pause, publish, pubsub, receive, server, subscriberClient, text, unique,
  until, useServer,
} from './rig.mjs';

useServer();

test('three messages of one key arrive as first, second, third', options, async () => {
  const {topic, subscription} = await pair();
  const got = [];
  receive(subscription, message => {
    got.push(text(message));
    message.ack();
  });
  for (const data of ['first', 'second', 'third']) await publish(topic, data, 'k');
  await until('three', () => got.length >= 3);
  assert.deepEqual(got, ['first', 'second', 'third']);
  await subscription.close();
});

test('five of one key with a slow handler: never two at once', options, async () => {
  const {topic, subscription} = await pair();
  const got = [];
  let active = 0;
  let most = 0;
  receive(subscription, async message => {
    most = Math.max(most, ++active);
    await pause(50);
    --active;
    got.push(text(message));
    message.ack();
  });
  await Promise.all(['1', '2', '3', '4', '5'].map(data => publish(topic, data, 'k')));
  await until('five', () => got.length >= 5);
  assert.equal(most, 1);
  assert.deepEqual(got, ['1', '2', '3', '4', '5']);
  await subscription.close();
});

test('three keys: more than one at once', options, async () => {
  const {topic, subscription} = await pair();
  const held = [];
  receive(subscription, message => held.push(message));
  await Promise.all(['a', 'b', 'c'].map(key => publish(topic, key, key)));
  await until('all three, none acknowledged', () => held.length >= 3);
  held.forEach(message => message.ack());
  await subscription.close();
});

test('a nack brings the first again, before the second', options, async () => {
  const {topic, subscription} = await pair();
  const got = [];
  receive(subscription, message => {
    got.push(text(message));
    if (got.length === 1) message.nack();
    else message.ack();
  });
  await publish(topic, 'first', 'k');
  await publish(topic, 'second', 'k');
  await until('three deliveries', () => got.length >= 3);
  assert.deepEqual(got, ['first', 'first', 'second']);
  await subscription.close();
});

test('a deadline of one second that passes: first again, then second', options, async () => {
  const {topic, subscription} = await pair({ackDeadlineSeconds: 1});
  await publish(topic, 'first', 'k');
  await publish(topic, 'second', 'k');
  const client = subscriberClient();
  const name = `projects/test/subscriptions/${subscription.name.split('/').pop()}`;
  const pull = async () => {
    const [response] = await client.pull({subscription: name, maxMessages: 10});
    return response.receivedMessages;
  };
  assert.deepEqual((await pull()).map(one => text(one.message)), ['first']);
  const again = await pull();
  assert.deepEqual(again.map(one => text(one.message)), ['first']);
  await client.acknowledge({subscription: name, ackIds: [again[0].ackId]});
  assert.deepEqual((await pull()).map(one => text(one.message)), ['second']);
});

test('a blocked key does not hold up a message without one', options, async () => {
  const {topic, subscription} = await pair();
  const got = [];
  const held = [];
  receive(subscription, message => {
    got.push(text(message));
    held.push(message);
  });
  await publish(topic, 'blocked', 'k');
  await until('the first', () => held.length === 1);
  await publish(topic, 'free');
  await until('the free one', () => got.includes('free'));
  held.forEach(message => message.ack());
  await subscription.close();
});

test('two subscriptions get everything in order, each by itself', options, async () => {
  const {topic, subscription} = await pair();
  const name = unique('subscription');
  await topic.createSubscription(name, {enableMessageOrdering: true});
  const other = pubsub.subscription(name, {batching: {maxMilliseconds: 0}});
  const got = [[], []];
  [subscription, other].forEach((one, index) => receive(one, message => {
    got[index].push(text(message));
    message.ack();
  }));
  for (const data of ['1', '2', '3']) await publish(topic, data, 'k');
  await until('all', () => got[0].length >= 3 && got[1].length >= 3);
  assert.deepEqual(got, [['1', '2', '3'], ['1', '2', '3']]);
  await Promise.all([subscription.close(), other.close()]);
});

test('20 messages over 5 keys through a batching publisher', options, async () => {
  const {topic, subscription} = await pair();
  const got = new Map();
  let count = 0;
  receive(subscription, message => {
    const list = got.get(message.orderingKey) ?? [];
    got.set(message.orderingKey, [...list, Number(text(message))]);
    ++count;
    message.ack();
  });
  const ids = await Promise.all(
      Array.from({length: 20}, (_, index) => publish(topic, `${index}`, `key-${index % 5}`)));
  assert.equal(new Set(ids).size, 20);
  await until('all', () => count >= 20);
  for (const list of got.values()) assert.deepEqual(list, [...list].sort((a, b) => a - b));
  await subscription.close();
});

test('exactly once: a nack brings it again, and the ack of that one succeeds', options, async () => {
  const {topic, subscription} = await pair({enableExactlyOnceDelivery: true});
  const messages = [];
  receive(subscription, message => messages.push(message));
  await publish(topic, 'once', 'k');
  await until('one', () => messages.length === 1);
  assert.equal(await messages[0].nackWithResponse(), 'SUCCESS');
  await until('the same again', () => messages.length === 2);
  assert.equal(await messages[1].ackWithResponse(), 'SUCCESS');
  await subscription.close();
});

test('errors have the codes of the service', options, async () => {
  const {topic} = await pair();
  await assert.rejects(pubsub.topic('none-such').getMetadata(), hasCode(5));
  await assert.rejects(pubsub.createTopic(topic.name), hasCode(6));
  await assert.rejects(publish(topic, ''), hasCode(3));
  await assert.rejects(topic.createSubscription(unique('bad'), {filter: 'nonsense('}), hasCode(3));
});

test('a filter lets through what it names', options, async () => {
  const {topic, subscription} = await pair({filter: 'attributes.colour = "blue"'});
  const got = [];
  receive(subscription, message => {
    got.push(text(message));
    message.ack();
  });
  for (const [data, colour] of [['1', 'red'], ['2', 'blue'], ['3', 'green'], ['4', 'blue']])
    await topic.publishMessage({data: Buffer.from(data), attributes: {colour}, orderingKey: 'k'});
  await until('two', () => got.length >= 2);
  assert.deepEqual(got, ['2', '4']);
  await subscription.close();
});

test('a dead letter comes after five attempts, with its key and its origin', options, async () => {
  const [dead] = await pubsub.createTopic(unique('dead'));
  const [letters] = await dead.createSubscription(unique('letters'));
  const {topic, subscription} = await pair(
      {deadLetterPolicy: {deadLetterTopic: dead.name, maxDeliveryAttempts: 5}});
  const attempts = [];
  const got = [];
  receive(subscription, message => {
    attempts.push(message.deliveryAttempt);
    message.nack();
  });
  receive(letters, message => {
    got.push(message);
    message.ack();
  });
  await publish(topic, 'poison', 'k');
  await until('the letter', () => got.length === 1);
  assert.deepEqual(attempts, [1, 2, 3, 4, 5]);
  assert.equal(got[0].orderingKey, 'k');
  assert.equal(got[0].attributes.CloudPubSubDeadLetterSourceDeliveryCount, '5');
  await Promise.all([subscription.close(), letters.close()]);
});

test('a snapshot brings back what was acknowledged after it', options, async () => {
  const {topic, subscription} = await pair();
  await publish(topic, 'again');
  const [snapshot] = await subscription.createSnapshot(unique('snapshot'));
  const got = [];
  receive(subscription, message => {
    got.push(text(message));
    message.ack();
  });
  await until('one', () => got.length === 1);
  await subscription.seek(snapshot.name);
  await until('it again', () => got.length >= 2);
  await subscription.close();
});

test('no more messages are outstanding than the client wants', options, async () => {
  const {topic, subscription} = await pair({}, {
    flowControl: {maxMessages: 3, allowExcessMessages: false},
    streamingOptions: {maxStreams: 1},
  });
  const held = [];
  let count = 0;
  receive(subscription, message => {
    ++count;
    held.push(message);
    assert.ok(held.length <= 3, `${held.length} are outstanding`);
  });
  await Promise.all(Array.from({length: 10}, (_, index) => publish(topic, `${index}`)));
  while (count < 10) {
    await until('some', () => held.length > 0);
    held.splice(0).forEach(message => message.ack());
  }
  held.forEach(message => message.ack());
  await subscription.close();
});

test('labels, masks and lists', options, async () => {
  const {topic, subscription} = await pair();
  await topic.setMetadata({labels: {team: 'blue'}});
  const [described] = await topic.getMetadata();
  assert.deepEqual(described.labels, {team: 'blue'});
  await subscription.setMetadata({ackDeadlineSeconds: 33});
  const [settings] = await subscription.getMetadata();
  assert.equal(settings.ackDeadlineSeconds, 33);
  const [subscriptions] = await topic.getSubscriptions();
  assert.equal(subscriptions.length, 1);
  const [topics] = await pubsub.getTopics({pageSize: 2, autoPaginate: false});
  assert.equal(topics.length, 2);
});

test('a policy is kept, and every permission granted', options, async () => {
  const {topic} = await pair();
  const [granted] = await topic.iam.testPermissions(['pubsub.topics.publish']);
  assert.equal(granted['pubsub.topics.publish'], true);
  const [policy] = await topic.iam.getPolicy();
  policy.bindings = [{role: 'roles/pubsub.viewer', members: ['user:somebody@example.com']}];
  await topic.iam.setPolicy(policy);
  const [kept] = await topic.iam.getPolicy();
  assert.equal(kept.bindings[0].role, 'roles/pubsub.viewer');
});

test('a message of nine megabytes', options, async () => {
  const {topic, subscription} = await pair();
  const data = Buffer.alloc(9_000_000, 'x');
  let got;
  receive(subscription, message => {
    got = message.data;
    message.ack();
  });
  await topic.publishMessage({data});
  await until('it', () => got);
  assert.ok(data.equals(got));
  await subscription.close();
});

test('clients go on by themselves after a crash, and nothing is lost', options, async () => {
  const {topic, subscription} = await pair();
  const got = new Map();
  receive(subscription, message => {
    const list = got.get(message.orderingKey) ?? [];
    const data = Number(text(message));
    if (!list.includes(data)) got.set(message.orderingKey, [...list, data]);
    message.ack();
  });
  let published = 0;
  for (let round = 0; round < 3; ++round) {
    await Promise.all(Array.from({length: 50}, () => publish(topic, `${published++}`, `key-${published % 5}`)));
    await server.crash();
  }
  await until('all', () => [...got.values()].flat().length >= published, 90_000);
  for (const list of got.values()) assert.deepEqual(list, [...list].sort((a, b) => a - b));
  await subscription.close();
});
