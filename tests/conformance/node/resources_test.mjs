// Topics, subscriptions, snapshots and policies through the official Node client: made, listed in
// pages, changed by masks, deleted; and what is refused, with which code.
//
// The published system tests of that client make the same calls; docs/pubsub_api.md says which of them.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  hasCode, options, pair, publish, publisherClient, pubsub, subscriberClient, unique, until, useServer,
} from './rig.mjs';

useServer();

const kInvalidArgument = 3;
const kNotFound = 5;
const kAlreadyExists = 6;
const kFailedPrecondition = 9;
const kOutOfRange = 11;
const kUnimplemented = 12;

const shortName = resource => resource.name.split('/').pop();
const collect = async stream => {
  const all = [];
  for await (const one of stream) all.push(one);
  return all;
};

test('a topic exists from its creation to its deletion', options, async () => {
  const topic = pubsub.topic(unique('topic'));
  assert.deepEqual(await topic.exists(), [false]);
  await topic.get({autoCreate: true});
  assert.deepEqual(await topic.exists(), [true]);
  const [metadata] = await topic.getMetadata();
  assert.equal(metadata.name, topic.name);
  assert.equal(metadata.state, 'ACTIVE');
  await assert.rejects(topic.create(), hasCode(kAlreadyExists));
  await topic.delete();
  assert.deepEqual(await topic.exists(), [false]);
  await assert.rejects(topic.delete(), hasCode(kNotFound));
  await assert.rejects(publish(topic, 'late'), hasCode(kNotFound));
});

test('lists come whole, by pages and as streams', options, async () => {
  const names = Array.from({length: 7}, () => unique('listed'));
  for (const name of names) await pubsub.createTopic(name);
  const listed = topics => topics.map(shortName).filter(name => names.includes(name));
  const [all] = await pubsub.getTopics();
  assert.deepEqual(listed(all).sort(), [...names].sort());
  assert.equal(listed(await collect(pubsub.getTopicsStream())).length, 7);

  const client = publisherClient();
  const seen = [];
  let pages = 0;
  for (let pageToken = ''; pages === 0 || pageToken;) {
    const [topics, , response] = await client.listTopics(
        {project: 'projects/test', pageSize: 3, pageToken}, {autoPaginate: false});
    assert.ok(topics.length <= 3);
    seen.push(...topics);
    pageToken = response.nextPageToken;
    ++pages;
  }
  assert.deepEqual(listed(seen).sort(), [...names].sort());
  assert.equal(new Set(seen.map(shortName)).size, seen.length);
});

test('subscriptions of a topic, and of all', options, async () => {
  const {topic} = await pair();
  await topic.createSubscription(unique('second'));
  const [ofTopic] = await topic.getSubscriptions();
  assert.equal(ofTopic.length, 2);
  assert.equal((await collect(topic.getSubscriptionsStream())).length, 2);
  const [all] = await pubsub.getSubscriptions();
  for (const one of ofTopic) assert.ok(all.some(other => other.name === one.name));
});

test('a subscription exists from its creation to its deletion', options, async () => {
  const [topic] = await pubsub.createTopic(unique('topic'));
  const subscription = topic.subscription(unique('subscription'));
  assert.deepEqual(await subscription.exists(), [false]);
  await subscription.get({autoCreate: true});
  assert.deepEqual(await subscription.exists(), [true]);
  const name = shortName(subscription);
  await assert.rejects(topic.createSubscription(name), hasCode(kAlreadyExists));
  await assert.rejects(pubsub.topic('none-such').createSubscription(name), hasCode(kAlreadyExists));
  await subscription.delete();
  await assert.rejects(subscription.getMetadata(), hasCode(kNotFound));
  await assert.rejects(
      pubsub.topic('none-such').createSubscription(unique('orphan')), hasCode(kNotFound));
});

test('what a subscription does not say is filled in', options, async () => {
  const {subscription} = await pair({
    retryPolicy: {minimumBackoff: {seconds: 12}},
    deadLetterPolicy: {deadLetterTopic: (await pubsub.createTopic(unique('dead')))[0].name},
  });
  const [settings] = await subscription.getMetadata();
  assert.equal(settings.ackDeadlineSeconds, 10);
  assert.equal(Number(settings.messageRetentionDuration.seconds), 7 * 86_400);
  assert.equal(Number(settings.expirationPolicy.ttl.seconds), 31 * 86_400);
  assert.equal(Number(settings.retryPolicy.minimumBackoff.seconds), 12);
  assert.equal(Number(settings.retryPolicy.maximumBackoff.seconds), 600);
  assert.equal(settings.deadLetterPolicy.maxDeliveryAttempts, 5);
  assert.equal(settings.pushConfig.pushEndpoint, '');
  assert.equal(settings.enableMessageOrdering, true);
  assert.equal(settings.state, 'ACTIVE');
});

test('a mask changes what it names and nothing else', options, async () => {
  const {subscription} = await pair({labels: {team: 'blue'}, ackDeadlineSeconds: 20});
  await subscription.setMetadata({messageRetentionDuration: 3 * 86_400});
  const [first] = await subscription.getMetadata();
  assert.equal(Number(first.messageRetentionDuration.seconds), 3 * 86_400);
  assert.equal(Number(first.messageRetentionDuration.nanos), 0);
  assert.deepEqual(first.labels, {team: 'blue'});
  assert.equal(first.ackDeadlineSeconds, 20);

  const client = subscriberClient();
  await client.updateSubscription({
    subscription: {name: subscription.name, labels: {team: 'red'}, ackDeadlineSeconds: 99},
    updateMask: {paths: ['labels']},
  });
  await client.updateSubscription({
    subscription: {name: subscription.name, retryPolicy: {minimumBackoff: {seconds: 1}}},
    updateMask: {paths: ['retry_policy']},
  });
  const [second] = await subscription.getMetadata();
  assert.deepEqual(second.labels, {team: 'red'});
  assert.equal(second.ackDeadlineSeconds, 20);
  assert.equal(Number(second.retryPolicy.minimumBackoff.seconds), 1);
  await client.updateSubscription({
    subscription: {name: subscription.name}, updateMask: {paths: ['retry_policy', 'labels']},
  });
  const [third] = await subscription.getMetadata();
  assert.equal(third.retryPolicy, null);
  assert.deepEqual(third.labels, {});
});

test('a mask that is missing, unknown or of a fixed field is refused', options, async () => {
  const {subscription, topic} = await pair();
  const client = subscriberClient();
  const update = paths => client.updateSubscription(
      {subscription: {name: subscription.name, topic: topic.name}, updateMask: {paths}});
  for (const paths of [[], ['foo'], ['ackDeadlineSeconds'], ['topic'], ['enable_message_ordering'], ['filter'],
    ['name']])
    await assert.rejects(update(paths), hasCode(kInvalidArgument), `${paths}`);
  await assert.rejects(
      publisherClient().updateTopic({topic: {name: topic.name}, updateMask: {paths: []}}),
      hasCode(kInvalidArgument));
});

test('names follow the rules of the service', options, async () => {
  const client = publisherClient();
  const create = id => client.createTopic({name: `projects/test/topics/${id}`});
  for (const id of ['ab', '1abc', 'googabc', 'has space', `a${'b'.repeat(255)}`, 'sla/sh'])
    await assert.rejects(create(id), hasCode(kInvalidArgument), id);
  for (const id of ['abc', `a${'b'.repeat(254)}`, 'a-._~+%b']) await create(id);
  await assert.rejects(client.createTopic({name: 'topics/abc'}), hasCode(kInvalidArgument));
  await assert.rejects(client.createTopic({name: 'projects//topics/abc'}), hasCode(kInvalidArgument));
});

test('settings out of bounds are refused with the code of the service', options, async () => {
  const [topic] = await pubsub.createTopic(unique('topic'));
  const dead = topic.name;
  const refused = [
    [kInvalidArgument, {ackDeadlineSeconds: 601}],
    [kInvalidArgument, {ackDeadlineSeconds: -1}],
    [kInvalidArgument, {messageRetentionDuration: {seconds: 599}}],
    [kInvalidArgument, {messageRetentionDuration: {seconds: 31 * 86_400 + 1}}],
    [kInvalidArgument, {expirationPolicy: {ttl: {seconds: 86_399}}}],
    [kInvalidArgument, {retryPolicy: {minimumBackoff: {seconds: 601}}}],
    [kInvalidArgument, {retryPolicy: {minimumBackoff: {seconds: 20}, maximumBackoff: {seconds: 10}}}],
    [kInvalidArgument, {filter: 'attributes.a = "1" AND attributes.b = "2" OR attributes:c'}],
    [kInvalidArgument, {filter: `attributes:${'k'.repeat(256)}`}],
    [kOutOfRange, {deadLetterPolicy: {deadLetterTopic: dead, maxDeliveryAttempts: 4}}],
    [kOutOfRange, {deadLetterPolicy: {deadLetterTopic: dead, maxDeliveryAttempts: 101}}],
    [kNotFound, {deadLetterPolicy: {deadLetterTopic: 'projects/test/topics/none-such'}}],
    [kUnimplemented, {bigqueryConfig: {table: 'a.b.c'}}],
  ];
  for (const [code, settings] of refused) {
    await assert.rejects(
        topic.createSubscription(unique('refused'), settings), hasCode(code), JSON.stringify(settings));
  }
  const client = publisherClient();
  await assert.rejects(
      client.createTopic({
        name: `projects/test/topics/${unique('topic')}`, messageRetentionDuration: {seconds: 599},
      }), hasCode(kInvalidArgument));
});

test('the retention of a topic is seen in its subscriptions', options, async () => {
  const [topic] =
      await pubsub.createTopic({name: unique('kept'), messageRetentionDuration: {seconds: 86_400}});
  const [subscription] = await topic.createSubscription(unique('subscription'));
  const [settings] = await subscription.getMetadata();
  assert.equal(Number(settings.topicMessageRetentionDuration.seconds), 86_400);
});

test('a subscription outlives its topic, and may be detached', options, async () => {
  const {topic, subscription} = await pair();
  await pubsub.detachSubscription(subscription.name);
  const [settings] = await subscription.getMetadata();
  assert.equal(settings.detached, true);
  await assert.rejects(
      subscriberClient().pull({subscription: subscription.name, maxMessages: 1}),
      hasCode(kFailedPrecondition));
  await topic.delete();
  const [orphan] = await subscription.getMetadata();
  assert.equal(orphan.topic, '_deleted-topic_');
});

test('a stream of a subscription that is not there ends with its code', options, async () => {
  const {topic} = await pair();
  const subscription = topic.subscription(unique('nowhere'));
  const error = await new Promise(resolve => {
    subscription.on('message', () => {});
    subscription.on('error', resolve);
  });
  assert.equal(error.code, kNotFound);
  await subscription.close();
});

test('a stream ends when its subscription is deleted', options, async () => {
  const {topic, subscription} = await pair();
  let error;
  let got = 0;
  subscription.on('message', message => {
    ++got;
    message.ack();
  });
  subscription.on('error', reason => error = reason);
  await publish(topic, 'one');
  await until('one', () => got === 1);
  await pubsub.subscription(subscription.name).delete();
  await until('its end', () => error);
  assert.equal(error.code, kNotFound);
  await subscription.close();
});

test('snapshots are made, listed, changed and deleted', options, async () => {
  const {topic, subscription} = await pair();
  const name = unique('snapshot');
  const client = subscriberClient();
  const [snapshot] = await client.createSnapshot({
    name: `projects/test/snapshots/${name}`, subscription: subscription.name, labels: {why: 'test'},
  });
  const [listed] = await pubsub.getSnapshots();
  assert.ok(listed.map(shortName).includes(name));
  const streamed = await collect(pubsub.getSnapshotsStream());
  assert.ok(streamed.map(shortName).includes(name));
  const [metadata] = await client.getSnapshot({snapshot: snapshot.name});
  assert.equal(metadata.topic, topic.name);
  assert.deepEqual(metadata.labels, {why: 'test'});
  assert.ok(Number(metadata.expireTime.seconds) > Date.now() / 1000 + 6 * 86_400);
  const [changed] = await client.updateSnapshot(
      {snapshot: {name: snapshot.name, labels: {why: 'other'}}, updateMask: {paths: ['labels']}});
  assert.deepEqual(changed.labels, {why: 'other'});
  const [ofTopic] = await publisherClient().listTopicSnapshots({topic: topic.name});
  assert.deepEqual(ofTopic, [snapshot.name]);
  await assert.rejects(subscription.createSnapshot(name), hasCode(kAlreadyExists));
  const {subscription: other} = await pair();
  await assert.rejects(other.seek(snapshot.name), hasCode(kFailedPrecondition));
  await pubsub.snapshot(snapshot.name).delete();
  await assert.rejects(client.getSnapshot({snapshot: snapshot.name}), hasCode(kNotFound));
});

test('a policy is empty at first, then what was set', options, async () => {
  const {topic, subscription} = await pair();
  for (const resource of [topic, subscription]) {
    const [policy] = await resource.iam.getPolicy();
    assert.deepEqual(policy.bindings, []);
    const bindings = [{role: 'roles/pubsub.publisher', members: ['serviceAccount:a@example.com'], condition: null}];
    const [kept] = await resource.iam.setPolicy({bindings});
    assert.deepEqual(kept.bindings, bindings);
    const asked = ['pubsub.topics.get', 'pubsub.topics.update'];
    const [granted] = await resource.iam.testPermissions(asked);
    assert.deepEqual(granted, Object.fromEntries(asked.map(one => [one, true])));
  }
});

test('schemas are refused', options, async () => {
  await assert.rejects(pubsub.createSchema(unique('schema'), 'AVRO', '{}'), hasCode(kUnimplemented));
});
