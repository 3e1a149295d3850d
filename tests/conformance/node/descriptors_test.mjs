// The wire contract in proto/, written by us, against the published packages': names, numbers, types,
// labels and oneofs of every message, values of every enumeration, every method.
import assert from 'node:assert/strict';
import {existsSync, readdirSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';

import protobuf from 'protobufjs';

const packages = fileURLToPath(new URL('node_modules', import.meta.url));
const ours = join(process.env.ORDO_SOURCE, 'proto');
const published = [
  join(packages, '@google-cloud/pubsub/build/protos'), join(packages, 'google-gax/build/protos'),
];

// Reads the files, each from the first folder that has it.
function load(folders, files) {
  const root = new protobuf.Root();
  root.resolvePath = (origin, target) => {
    const folder = folders.find(one => existsSync(join(one, target)));
    // Else it is one that protobufjs knows by itself, such as google/protobuf/any.proto.
    return folder ? join(folder, target) : target;
  };
  root.loadSync(files, {keepCase: true});
  root.resolveAll();
  return root;
}

const filesOf = (folder, under) => readdirSync(join(folder, under), {withFileTypes: true}).flatMap(
    entry => entry.isDirectory() ? filesOf(folder, join(under, entry.name)) :
      entry.name.endsWith('.proto') ? [join(under, entry.name)] : []);

const nameOf = type => type.fullName.replace(/^\./, '');

function describeField(field) {
  const type = field.resolvedType ? nameOf(field.resolvedType) : field.type;
  return {
    number: field.id,
    type: field instanceof protobuf.MapField ? `map<${field.keyType}, ${type}>` : type,
    label: field.repeated ? 'repeated' : 'single',
    oneof: field.partOf && !field.options?.proto3_optional ? field.partOf.name : '',
    isOptional: Boolean(field.options?.proto3_optional),
    isPacked: field.repeated ? field.packed : false,
  };
}

// All that is declared, by its full name.
function describe(object, into = new Map()) {
  const named = (list, how) => Object.fromEntries(list.map(one => [one.name, how(one)]));
  if (object instanceof protobuf.Type) into.set(nameOf(object), named(object.fieldsArray, describeField));
  if (object instanceof protobuf.Enum) into.set(nameOf(object), {...object.values});
  if (object instanceof protobuf.Service) {
    into.set(nameOf(object), named(object.methodsArray, method => ({
      request: nameOf(method.resolvedRequestType),
      response: nameOf(method.resolvedResponseType),
      streams: [Boolean(method.requestStream), Boolean(method.responseStream)],
    })));
  }
  for (const nested of object.nestedArray ?? []) describe(nested, into);
  return into;
}

const files = filesOf(ours, 'google');
const declared = describe(load([ours], files));
const contract = describe(load(published, files));

test('every file of ours is a published one, with messages', () => {
  assert.ok(files.includes('google/pubsub/v1/pubsub.proto'), files.join());
  assert.ok(declared.size >= 60, `${declared.size} are declared`);
});

// Refused, or not kept, whatever is in them (docs/pubsub_api.md): declared without their fields.
const empty = [
  'SchemaSettings', 'IngestionDataSourceSettings', 'MessageTransform', 'BigQueryConfig',
  'BigtableConfig', 'CloudStorageConfig', 'Subscription.AnalyticsHubSubscriptionInfo',
].map(name => `google.pubsub.v1.${name}`);
// Only found in those, in messages that ingestion writes, and in SchemaService.
const foreign = /^google\.pubsub\.v1\.(.*Schema|Encoding|Validate|Ingestion|PlatformLogs|JavaScriptUDF|AIInference)/;

for (const [name, description] of declared) {
  if (name.startsWith('google.protobuf.')) continue;
  test(`${name} is as published`, () => {
    assert.ok(contract.has(name), 'nobody has published it');
    assert.deepEqual(description, empty.includes(name) ? {} : contract.get(name));
  });
}

test('nothing published of Publisher and Subscriber is missing', () => {
  const wanted = [...contract.keys()].filter(
      name => name.startsWith('google.pubsub.v1.') && !foreign.test(name) &&
          !empty.some(one => name.startsWith(`${one}.`)));
  assert.ok(wanted.length >= 50, `${wanted.length} are published`);
  assert.deepEqual(wanted.filter(name => !declared.has(name)), []);
});
