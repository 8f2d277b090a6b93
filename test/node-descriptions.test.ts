/** Names, labels and hostnames of nodes [core-4-21], which only operators can read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../src/base/json/value.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import {
  auditEvents,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  type TestNode,
} from './support/requests.ts';

const shared = sharedAuthority();

function describe(na: TestAuthority, key: string, body: JsonObject): Promise<Received> {
  const call = { operator: na.standard };
  return operate(na, `/admin/nodes/${encodeURIComponent(key)}`, body, call);
}

async function read(na: TestAuthority, path: string) {
  return (await operate(na, path, {}, { method: 'GET', operator: na.standard })).body;
}

/** What the row of the certificate says about the node. */
async function descriptionOf(na: TestAuthority, certId: string) {
  const { name, labels, hostname } = await read(na, `/admin/certificates/${certId}`);
  return { name, labels, hostname };
}

async function joinedAs(na: TestAuthority, terms: JsonObject, hostname: string): Promise<TestNode> {
  const key = newKey();
  const body = { invite_token: await invite(na, terms), hostname };
  const joined = await nodeRequest(na, '/join', key, body);
  assert.equal(outcome(joined), '200');
  assert.deepEqual(
    Object.keys(joined.body).filter((name) => /name|label|host/.test(name)),
    ['network_name'],
    'a certificate does not contain it',
  );
  return { key, certId: joined.body.cert_id };
}

test('an invite names its node, and the node reports its hostname; both survive everything', async () => {
  await using na = await startTestAuthority();
  const terms = { name: 'büro 1', labels: { zone: 'eu-1', env: 'prod', 'team.io/x': '' } };
  const node = await joinedAs(na, terms, 'host-1.example');
  const plain = await joinedNode(na);
  const expected = {
    name: 'büro 1',
    labels: { env: 'prod', 'team.io/x': '', zone: 'eu-1' },
    hostname: 'host-1.example',
  };
  assert.deepEqual(await descriptionOf(na, node.certId), expected);
  const unnamed = await read(na, `/admin/certificates/${plain.certId}`);
  for (const member of ['name', 'labels', 'hostname']) assert.ok(!(member in unnamed), member);

  const { body } = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
  assert.deepEqual(await descriptionOf(na, body.cert_id), expected, 'after a renewal');
  await operate(na, '/admin/revoke', { node_public_key: node.key.publicKey });
  const again = { invite_token: await invite(na, { labels: {} }) };
  const rejoined = await nodeRequest(na, '/join', node.key, again);
  assert.deepEqual(await descriptionOf(na, rejoined.body.cert_id), expected, 'after a new join');

  await using restarted = await na.restart();
  assert.deepEqual(await descriptionOf(restarted, rejoined.body.cert_id), expected);
  await heartbeat(restarted, { key: node.key, certId: rejoined.body.cert_id });
  const { nodes } = await read(restarted, '/nodes');
  const { name, labels, hostname } = nodes[rejoined.body.cert_id];
  assert.deepEqual({ name, labels, hostname }, expected, 'in the roster');
  assert.ok(!('name' in (nodes[plain.certId] ?? {})));
});

test('{n} in a name is the number of the token', async () => {
  const na = await shared();
  const call = { operator: na.standard };
  const terms = { name: 'web-{n}', labels: { env: 'prod' }, count: 3, batch: 'webs' };
  const { body } = await operate(na, '/admin/invite', terms, call);
  const names = body.tokens.map(({ name }: { name: string }) => name);
  assert.deepEqual([names, body.name], [['web-1', 'web-2', 'web-3'], 'web-1']);
  const key = newKey();
  const join = { invite_token: body.tokens[1].token_id };
  const joined = await nodeRequest(na, '/join', key, join);
  assert.equal((await descriptionOf(na, joined.body.cert_id)).name, 'web-2');
  const one = await operate(na, '/admin/invite', { name: '{n}{n}' }, call);
  assert.equal(one.body.name, '11');

  const rows = async (query: string) =>
    (await read(na, `/admin/invites?${query}`)).invites
      .map(({ name }: { name?: string }) => name)
      .sort();
  assert.deepEqual(await rows('batch=webs'), ['web-1', 'web-2', 'web-3']);
  assert.deepEqual(await rows('name=WEB-*&status=unused'), ['web-1', 'web-3']);
  assert.deepEqual(await rows('name=web-3&label=env'), ['web-3']);
  assert.deepEqual(await rows('batch=webs&label=env=test'), []);
  const { labels } = (await read(na, '/admin/invites?name=web-3')).invites[0];
  assert.deepEqual(labels, { env: 'prod' });
});

test('operators change a description, which is audited only if it changes', async () => {
  await using na = await startTestAuthority();
  const { key, certId } = await joinedAs(na, { name: 'old' }, 'host-1');
  const node = { node_public_key: key.publicKey, hostname: 'host-1' };
  const changes: [JsonObject, JsonObject][] = [
    [
      { name: 'db-1', labels: { env: 'prod', zone: 'eu' } },
      { name: 'db-1', labels: { env: 'prod', zone: 'eu' } },
    ],
    [
      { name: 'db-1', labels: { env: 'prod' } },
      { name: 'db-1', labels: { env: 'prod', zone: 'eu' } },
    ],
    [{}, { name: 'db-1', labels: { env: 'prod', zone: 'eu' } }],
    [
      { name: null, labels: { env: null, zone: 'us' } },
      { name: 'db-1', labels: { zone: 'us' } },
    ],
    [{ name: '' }, { labels: { zone: 'us' } }],
    [{ labels: { zone: null } }, {}],
  ];
  for (const [change, expected] of changes) {
    const { status, body } = await describe(na, key.publicKey, change);
    assert.deepEqual([status, body], [200, { ...node, ...expected }], JSON.stringify(change));
  }
  assert.deepEqual(await descriptionOf(na, certId), {
    name: undefined,
    labels: undefined,
    hostname: 'host-1',
  });
  const remote = { node_public_key: key.publicKey, remote_addr: '127.0.0.1' };
  assert.deepEqual(
    auditEvents(na).filter(({ type }) => type === 'node_described'),
    [0, 3, 4, 5].map((index) => ({
      type: 'node_described',
      details: { ...remote, name: null, labels: {}, ...changes[index]?.[1] },
    })),
  );
  const [issued] = auditEvents(na).filter(({ type }) => type === 'certificate_issued');
  assert.deepEqual([issued?.details.name, issued?.details.hostname], ['old', 'host-1']);
  const [created] = auditEvents(na).filter(({ type }) => type === 'invite_created');
  assert.equal(created?.details.name, 'old');
});

test('an unknown node, and more than 16 labels, are refused', async () => {
  const na = await shared();
  const { key } = await joinedNode(na);
  const stranger = await describe(na, newKey().publicKey, { name: 'web-1' });
  assert.equal(outcome(stranger), '404 node_not_found');
  assert.equal(outcome(await describe(na, 'short', {})), '404 node_not_found');
  const many = (from: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`l${from + index}`, 'x']));
  assert.equal(outcome(await describe(na, key.publicKey, { labels: many(0, 16) })), '200');
  assert.equal(
    outcome(await describe(na, key.publicKey, { labels: many(9, 8) })),
    '409 too_many_labels',
  );
  const { labels } = (await describe(na, key.publicKey, {})).body;
  assert.deepEqual(labels, many(0, 16), 'nothing has changed');
});

const NAMES: [string, boolean][] = [
  ['a', true],
  ['a b', true],
  ['日本 · 1', true],
  ['😀'.repeat(64), true],
  ['x'.repeat(65), false],
  [' a', false],
  ['a ', false],
  ['a\u00a0', false],
  ['a\nb', false],
  ['a\u202eb', false],
  ['a\u200bb', false],
  ['a\u2028b', false],
  ['a\ue000b', false],
];

test('names, labels and hostnames have limits, wherever they are sent', async () => {
  const na = await shared();
  const { key } = await joinedNode(na);
  const call = { operator: na.standard };
  const named = (name: string | number) => operate(na, '/admin/invite', { name }, call);
  const labelled = (labels: unknown) =>
    operate(na, '/admin/invite', { labels: labels as JsonObject }, call);
  for (const [name, isAccepted] of NAMES) {
    const expected = isAccepted ? '200' : '400 invalid_name';
    assert.equal(outcome(await named(name)), expected, name);
    assert.equal(outcome(await describe(na, key.publicKey, { name })), expected);
  }
  for (const name of ['', 7]) assert.equal(outcome(await named(name)), '400 invalid_name');
  assert.equal(outcome(await describe(na, key.publicKey, { name: 7 })), '400 invalid_name');
  const fitting = { name: `${'x'.repeat(60)}{n}`, count: 1000 };
  assert.equal(outcome(await operate(na, '/admin/invite', fitting, call)), '200');
  const long = { name: `${'x'.repeat(61)}{n}`, count: 1000 };
  assert.equal(outcome(await operate(na, '/admin/invite', long, call)), '400 invalid_name');

  const tooMany = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`l${index}`, '']));
  for (const [labels, isAccepted] of [
    [{ 'a.b/c-d_0': 'x y' }, true],
    [JSON.parse('{"__proto__":"x","constructor":"y"}'), true],
    [{ ['k'.repeat(63)]: 'v'.repeat(63) }, true],
    [{ ['k'.repeat(64)]: '' }, false],
    [{ k: 'v'.repeat(64) }, false],
    [{ K: '' }, false],
    [{ '': '' }, false],
    [{ 'a=b': '' }, false],
    [{ k: 'a\u0000' }, false],
    [{ k: 1 }, false],
    [['k'], false],
    ['k=v', false],
    [tooMany, false],
  ] as const) {
    const expected = isAccepted ? '200' : '400 invalid_labels';
    assert.equal(outcome(await labelled(labels)), expected, JSON.stringify(labels));
    const other = (await joinedNode(na)).key.publicKey;
    assert.equal(outcome(await describe(na, other, { labels })), expected);
    if (isAccepted) assert.deepEqual((await describe(na, other, {})).body.labels, labels);
  }
  assert.equal(outcome(await labelled({ k: null })), '400 invalid_labels');

  for (const [hostname, isAccepted] of [
    ['h', true],
    ['Host-1.example_x', true],
    ['h'.repeat(253), true],
    ['h'.repeat(254), false],
    ['', false],
    ['a b', false],
    ['ü', false],
    [7, false],
  ] as const) {
    const body = { invite_token: await invite(na), hostname };
    const joined = await nodeRequest(na, '/join', newKey(), body);
    assert.equal(outcome(joined), isAccepted ? '200' : '400 invalid_hostname', `${hostname}`);
    const { hostname: _, ...rest } = body;
    const repeated = isAccepted ? '403 invalid_invite_token' : '200';
    const second = await nodeRequest(na, '/join', newKey(), rest);
    assert.equal(outcome(second), repeated, 'a refused join leaves the token usable');
  }
  const none = { invite_token: await invite(na), hostname: null };
  assert.equal(outcome(await nodeRequest(na, '/join', newKey(), none)), '200');
});

test('lists find nodes by name, label and hostname', async () => {
  await using na = await startTestAuthority();
  const web = await joinedAs(na, { name: 'Web-1', labels: { env: 'prod', zone: 'eu' } }, 'h-1');
  const web2 = await joinedAs(na, { name: 'web-12', labels: { env: 'test' } }, 'h-2.example');
  await joinedNode(na);
  const mail = await joinedAs(na, { name: 'a*b', labels: { env: 'prod' } }, 'web-1');
  const ids = async (query: string) =>
    (await read(na, `/admin/certificates?${query}`)).certificates.map(
      ({ cert_id }: { cert_id: string }) => cert_id,
    );
  for (const [query, expected] of [
    ['name=web-1', [web]],
    ['name=web-*', [web, web2]],
    ['name=*1*', [web, web2]],
    ['name=*-1', [web]],
    ['name=w*b*b*', []],
    ['name=*', [web, web2, mail]],
    ['name=a*b', [mail]],
    ['label=env', [web, web2, mail]],
    ['label=env=prod', [web, mail]],
    ['label=en', []],
    ['label=env=', []],
    ['label=env=prod&name=web*', [web]],
    ['label=env=prod&label=zone=eu', [web]],
    ['label=env=test&label=zone=eu', []],
    ['label=&label=env=test', [web2]],
    ['name=web-1&name=a*', [web, mail]],
    ['name=web-1&name=a*&label=zone', [web]],
    ['hostname=WEB-1', [mail]],
    ['hostname=h-*', [web, web2]],
    ['name=web-1&hostname=h-2*', []],
  ] as const) {
    const wanted = expected.map(({ certId }) => certId).sort();
    assert.deepEqual(await ids(query), wanted, query);
  }
  for (const [query, code] of [
    [`name=${'x'.repeat(65)}`, 'invalid_name'],
    ['name=%20x', 'invalid_name'],
    ['label=Env', 'invalid_labels'],
    ['label=env&label=Env', 'invalid_labels'],
    [`${'label=env&'.repeat(17)}`, 'invalid_labels'],
    [`${'name=web&'.repeat(17)}`, 'invalid_name'],
    [`label=a=${'x'.repeat(64)}`, 'invalid_labels'],
    ['hostname=a%20b', 'invalid_hostname'],
  ]) {
    for (const list of ['certificates', 'invites']) {
      if (list === 'invites' && code === 'invalid_hostname') continue;
      const call = { method: 'GET', operator: na.standard };
      const refused = await operate(na, `/admin/${list}?${query}`, {}, call);
      assert.equal(outcome(refused), `400 ${code}`, query);
    }
  }
});

test('the description is removed when retention has removed the last certificate of the key', async () => {
  await using na = await startTestAuthority({
    environment: {
      MESH_RETENTION_CERTIFICATE_DAYS: '1',
      MESH_RETENTION_RENEWED_CERTIFICATE_DAYS: '1',
    },
  });
  const sweep = async () => {
    for (let i = 0; i < 4; i += 1) await na.sweep();
  };
  const counted = async () =>
    /mesh_na_subjects\{kind="node-description"\} (\d+)/.exec((await get(na, '/metrics')).text)?.[1];
  const { key } = await joinedAs(na, { name: 'web-1', max_validity_hours: 1 }, 'host-1');
  await joinedNode(na, { labels: { env: 'prod' }, max_validity_hours: 1 });
  await joinedAs(na, { max_validity_hours: 1 }, 'host-3');
  const emptied = await joinedNode(na, { name: 'web-2' });
  await describe(na, emptied.key.publicKey, { name: '' });
  na.clock.advance(2 * HOUR);
  await sweep();
  assert.equal(await counted(), '3', 'only one without any member is removed at once');
  na.clock.advance(24 * HOUR);
  await sweep();
  assert.equal(await counted(), '0');
  assert.equal(outcome(await describe(na, key.publicKey, { name: 'x' })), '404 node_not_found');
});

test('no public route and no page contains a name, a label or a hostname', async () => {
  await using na = await startTestAuthority();
  const secrets = ['secretname', 'secretkey', 'secretvalue', 'secrethost'];
  const terms = { name: 'secretname', labels: { secretkey: 'secretvalue' } };
  const node = await joinedAs(na, terms, 'secrethost');
  await heartbeat(na, node);
  await describe(na, node.key.publicKey, { name: 'secretname-2' });
  await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
  const other = await joinedAs(na, terms, 'secrethost');
  await heartbeat(na, other);
  const known: Record<string, string> = {
    node_public_key: encodeURIComponent(node.key.publicKey),
    treaty_id: 'none',
    attestation_id: 'none',
  };
  const open = ROUTES.filter(
    ({ method, access }) =>
      method === 'GET' && ['public', 'internal', 'public-or-operator'].includes(access),
  );
  assert.ok(open.length > 30);
  for (const { path } of open) {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => known[name] ?? 'none');
    for (const accept of ['application/json', 'text/html']) {
      const answer = await fetch(na.url + filled, { headers: { accept } });
      const text = await answer.text();
      for (const secret of secrets) assert.ok(!text.includes(secret), `${path}: ${secret}`);
    }
  }
  const row = await read(na, `/admin/certificates/${other.certId}`);
  for (const secret of secrets) assert.ok(JSON.stringify(row).includes(secret), secret);
});

const character = fc.oneof(
  fc.constantFrom(...'az09._/-=*A é日😀\u0000\u202e\u2028'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
);
const word = (maxLength: number) =>
  fc.array(character, { maxLength }).map((characters) => characters.join(''));

test('any labels are refused, or returned as they were sent and found', async () => {
  const na = await shared();
  const { key, certId } = await joinedNode(na);
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(
        fc.oneof(fc.stringMatching(/^[a-z0-9._/-]{1,63}$/), word(4)),
        fc.oneof(word(8), word(70)),
        { maxKeys: 18 },
      ),
      async (labels) => {
        const held = (await describe(na, key.publicKey, {})).body.labels ?? {};
        const removed = Object.fromEntries(Object.keys(held).map((name) => [name, null]));
        assert.equal(outcome(await describe(na, key.publicKey, { labels: removed })), '200');
        const isFitting =
          Object.keys(labels).length <= 16 &&
          Object.entries(labels).every(
            ([name, value]) =>
              /^[a-z0-9._/-]{1,63}$/.test(name) &&
              [...value].length <= 63 &&
              !/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u.test(value),
          );
        const answer = await describe(na, key.publicKey, { labels });
        assert.equal(outcome(answer), isFitting ? '200' : '400 invalid_labels');
        const expected = isFitting ? { ...labels } : {};
        assert.deepEqual({ ...answer.body.labels }, expected);
        for (const [name, value] of Object.entries(expected).slice(0, 2)) {
          const label = encodeURIComponent(`${name}=${value}`);
          const found = await read(na, `/admin/certificates?label=${label}`);
          const ids = found.certificates.map(({ cert_id }: { cert_id: string }) => cert_id);
          assert.ok(ids.includes(certId), name);
        }
      },
    ),
    { numRuns: 30 },
  );
});
