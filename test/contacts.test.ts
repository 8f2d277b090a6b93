/** When nodes last made contact: counts for operators [core-4-23], and what is kept of it. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import Value from 'typebox/value';
import { createCertificateIndex } from '../src/authority/certificates/certificate-index.ts';
import { createContactBins } from '../src/authority/certificates/contact-counts.ts';
import { createContactWriter } from '../src/authority/certificates/contact-writer.ts';
import { createLiveness } from '../src/authority/certificates/last-contact.ts';
import type { ContactView } from '../src/authority/certificates/roster.ts';
import { createNonceWindows } from '../src/authority/replay/nonce-window.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { createSubjects } from '../src/authority/subjects/subjects.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { type ContactBin, Contacts } from '../src/protocol/rows/certificate.ts';
import { descriptionTest, isLabel, isNodeName } from '../src/protocol/rows/node-description.ts';
import type { TimeRange } from '../src/store/store.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
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
} from './support/requests.ts';

const DAY = 24 * HOUR;
const NONE = {
  active: 0,
  silent_under_hour: 0,
  silent_under_day: 0,
  silent_under_week: 0,
  silent_longer: 0,
};

function read(na: TestAuthority, query = '') {
  return operate(na, `/admin/contacts${query}`, {}, { method: 'GET', operator: na.standard });
}

function named(bins: readonly ContactBin[]): string[] {
  return bins.map(({ by, value, count, active }) => `${by} ${value}: ${active} of ${count}`);
}

test('nodes in use are counted by how long they have been silent, also after a restart', async () => {
  await using na = await startTestAuthority();
  const long = { max_validity_hours: 400 };
  const join = async (terms: object, hostname?: string) => {
    const invite_token = await invite(na, { ...long, ...terms });
    const body = {
      invite_token,
      validity_hours: 400,
      ...(hostname !== undefined && { hostname }),
    };
    const key = newKey();
    return { key, certId: (await nodeRequest(na, '/join', key, body)).body.cert_id as string };
  };
  const first = na.clock.now();
  await join({ name: 'Web-1', labels: { rack: 'r1' } });
  const revoked = await join({ name: 'web-9', labels: { rack: 'r1' } });
  await operate(na, '/admin/revoke', { cert_id: revoked.certId });
  await joinedNode(na, { name: 'expired', max_validity_hours: 1 });
  na.clock.advance(6 * DAY);
  const second = na.clock.now();
  await join({ labels: { rack: 'r2', role: 'r1' } }, 'Host.example');
  na.clock.advance(DAY);
  const renewing = await join({ roles: ['role:anchor'], labels: { rack: 'r1' } });
  na.clock.advance(2 * HOUR);
  await join({ name: 'db-1', labels: { racks: 'r1' } });
  na.clock.advance(10 * MINUTE);
  const { body } = await nodeRequest(na, '/renew', renewing.key, { cert_id: renewing.certId });
  await heartbeat(na, { key: renewing.key, certId: body.cert_id });
  const check = async (na: TestAuthority) => {
    const { body } = await read(na);
    assert.ok(Value.Check(Contacts, body), JSON.stringify(body));
    const { as_of, total, bins, unlabeled, other } = body;
    assert.equal(as_of, formatInstant(na.clock.now()));
    assert.deepEqual([unlabeled, other], [null, null]);
    assert.deepEqual(total, {
      ...{ count: 4, active: 1, silent_under_hour: 1, silent_under_day: 0 },
      ...{ silent_under_week: 1, silent_longer: 1, silent_since: formatInstant(first) },
    });
    assert.deepEqual(named(bins), [
      'name db-1: 0 of 1',
      'name web-1: 0 of 1',
      'hostname host.example: 0 of 1',
      'remote_addr 127.0.0.1: 1 of 1',
    ]);
    const racks = (await read(na, '?group=rack')).body;
    assert.deepEqual(named(racks.bins), ['label rack=r1: 1 of 2', 'label rack=r2: 0 of 1']);
    assert.deepEqual(racks.bins[1], {
      ...{ by: 'label', value: 'rack=r2', count: 1, ...NONE, silent_under_week: 1 },
      silent_since: formatInstant(second),
    });
    assert.equal(racks.unlabeled.silent_under_hour, 1, 'the key of a label is not its beginning');
    assert.equal((await read(na, '?group=none')).body.unlabeled.count, 4);
  };
  await check(na);
  await using again = await na.restart();
  await check(again);
});

suite('the question', () => {
  const authority = sharedAuthority();

  test('takes the filters of the list, and finds the same', async (t) => {
    const na = await authority();
    await joinedNode(na, { name: 'a-1', labels: { rack: 'r1' }, roles: ['role:anchor'] });
    const { certId, key } = await joinedNode(na, { name: 'a-2', labels: { rack: 'r2' } });
    na.clock.advance(10 * MINUTE);
    await heartbeat(na, await joinedNode(na, { name: 'b-1' }));
    for (const [name, value, count] of [
      ['role', 'role:anchor', 1],
      ['expires_before', formatInstant(na.clock.now()), 0],
      ['key', key.publicKey, 1],
      ['key', key.publicKey.slice(0, 12), 1],
      ['cert_id', certId, 1],
      ['name', 'A-*', 2],
      ['label', 'rack', 2],
      ['label', 'rack=r1', 1],
      ['hostname', '*', 0],
      ['health', 'healthy', 1],
      ['remote_addr', '127.', 3],
      ['silent_since', formatInstant(na.clock.now()), 2],
    ] as const) {
      await t.test(`${name}=${value}`, async () => {
        const query = `?${new URLSearchParams({ [name]: value })}`;
        const { total, bins } = (await read(na, query)).body;
        assert.equal(total.count, count);
        const counts: number[] = bins.map((bin: ContactBin) => bin.count);
        assert.equal(
          counts.reduce((sum, each) => sum + each, 0),
          count,
        );
        const list = `/admin/certificates${query}&status=in_use`;
        assert.equal((await operate(na, list, {}, { method: 'GET' })).body.count, count);
      });
    }
  });

  test('is refused if it makes no sense, after the caller was admitted, and leaves no trace', async (t) => {
    const na = await authority();
    const before = auditEvents(na).length;
    for (const [query, expected] of [
      ['?group=Rack', '400 invalid_labels'],
      ['?group=rack=r1', '400 invalid_labels'],
      ['?label=Rack', '400 invalid_labels'],
      ['?name=%00', '400 invalid_name'],
      ['?hostname=a/b', '400 invalid_hostname'],
      ['?key=short', '400 invalid_key'],
      ['?expires_before=tomorrow', '400 invalid_expires_before'],
      ['?silent_since=yesterday', '400 invalid_silent_since'],
      ['?group=&name=', '200'],
    ] as const) {
      await t.test(query, async () => assert.equal(outcome(await read(na, query)), expected));
    }
    assert.equal(auditEvents(na).length, before);
    assert.equal(outcome(await get(na, '/admin/contacts?group=Rack')), '401 admin_auth_failed');
  });

  test('waits behind at most 64 others, and then is refused', async () => {
    const na = await authority();
    const answers = await Promise.all(Array.from({ length: 200 }, () => read(na)));
    const outcomes = new Set(answers.map(outcome));
    assert.ok(outcomes.has('200'));
    const refused = answers.filter(({ status }) => status !== 200);
    assert.ok(refused.length > 0);
    for (const each of refused) {
      assert.equal(outcome(each), '429 rate_limit_exceeded');
      assert.equal(each.headers.get('retry-after'), '1');
    }
  });
});

suite('bins', () => {
  const now = Date.parse('2026-11-01T00:00:00Z');
  const at = { lastSeen: now - HOUR, isActive: true, remoteAddr: '' };

  function nodes(bins: readonly ContactBin[]): number {
    return bins.reduce((sum, { count }) => sum + count, 0);
  }

  test('of names have the longest beginnings that make at most 1,000, and are filters of the list', () => {
    const bins = createContactBins(null, now);
    for (let i = 0; i < 20_000; i += 1) {
      bins.add(at, { name: `Edge-${i.toString().padStart(5, '0')}` });
    }
    const { bins: made } = bins.counted();
    assert.equal(made.length, 200);
    assert.deepEqual(named(made.slice(0, 2)), [
      'name edge-000*: 100 of 100',
      'name edge-001*: 100 of 100',
    ]);
  });

  test('do not depend on the order of the nodes, and leave out none', () => {
    const digit = fc.constantFrom('a', 'B', '7', '-', '😀', 'é', 'İ');
    const digits = fc.tuple(digit, digit, digit, digit);
    fc.assert(
      fc.property(digits, fc.integer({ min: 1, max: 3000 }), (four, count) => {
        const names = Array.from({ length: count }, (_, i) =>
          i.toString(4).replaceAll(/\d/g, (each) => four[Number(each)] ?? ''),
        );
        const [answer, reversed] = [names, names.toReversed()].map((ordered) => {
          const bins = createContactBins(null, now);
          for (const name of ordered) bins.add(at, { name });
          return bins.counted();
        });
        assert.deepEqual(answer, reversed);
        const bins = answer?.bins ?? [];
        assert.ok(bins.length <= 1000);
        assert.equal(nodes(bins), count);
        for (const { value, count: inBin } of bins.filter((_, n) => n % 50 === 0)) {
          assert.ok(isNodeName(value), value);
          const isFound = descriptionTest({ name: [value], label: [] });
          assert.ok(names.filter((name) => isFound?.({ name })).length >= inBin, value);
        }
      }),
      { numRuns: 20 },
    );
  });

  test('of addresses are their beginnings, however many first characters there are', () => {
    const bins = createContactBins(null, now);
    for (let i = 0; i < 3000; i += 1) {
      bins.add({ ...at, remoteAddr: `10.1.${i >> 8}.${i & 255}` }, undefined);
      bins.add(at, { hostname: String.fromCodePoint(0x4e00 + i) });
    }
    const { bins: made } = bins.counted();
    const addresses = made.filter(({ by }) => by === 'remote_addr');
    assert.ok(addresses.length > 100 && addresses.length <= 1000);
    assert.ok(addresses.every(({ value }) => '10.1.'.startsWith(value.slice(0, 5))));
    assert.deepEqual(named(made.filter(({ by }) => by === 'hostname')), [
      'hostname *: 3000 of 3000',
    ]);
    assert.equal(nodes(made), 6000);
  });

  test('of more than 1,000 values of a label are merged into one', () => {
    const bins = createContactBins('serial', now);
    for (let i = 0; i < 1500; i += 1) bins.add(at, { labels: [`rack=r${i % 3}`, `serial=${i}`] });
    bins.add(at, { labels: ['serial=0'] });
    bins.add(at, { labels: ['serials=0'] });
    const { bins: made, other, unlabeled } = bins.counted();
    assert.equal(made.length, 1000);
    assert.ok(made.every(({ by, value }) => by === 'label' && isLabel(value)));
    assert.deepEqual([nodes(made), other?.count, unlabeled?.count], [1001, 500, 1]);
  });
});

const WINDOW = 1000;

test('restored contacts are active in the order of their contacts, and found by their ids', () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  const heardOf = ['a', 'b', 'c', 'd'].map((id, index) =>
    liveness.restore(id, {
      lastSeen: [3, 1, 2, 4][index] ?? 0,
      status: 'ok',
      remoteAddr: '',
      newestSignedAt: index + 10,
    }),
  );
  liveness.activate(heardOf.slice(0, 3));
  const order = () =>
    liveness
      .walk(500)
      .take(10)
      .map(({ id }) => id);
  assert.deepEqual(order(), ['a', 'c', 'b']);
  assert.equal(liveness.newestSignedAt('d'), 13);
  assert.equal(liveness.newestSignedAt('nobody'), 0);

  liveness.touch('b', { at: 5, status: 'ok', remoteAddr: '', chain: 0 });
  liveness.touch('new', { at: 6, status: 'ok', remoteAddr: '', chain: 0 });
  liveness.retire('c');
  assert.deepEqual(order(), ['new', 'b', 'a']);
  assert.equal(liveness.activeCount(3 + WINDOW), 2);
  assert.deepEqual(
    liveness.takeDirty().map(({ id, newestSignedAt }) => [id, newestSignedAt]),
    [
      ['b', 11],
      ['new', 0],
    ],
  );
});

test('contacts that another process stored are in order, each once, however often they move', () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  for (const [id, lastSeen] of [
    ['a', 1],
    ['b', 3],
    ['c', 2],
    ['a', 4],
    ['a', 4],
    ['c', 5],
  ] as const) {
    liveness.follow(id, { lastSeen, status: 'ok', remoteAddr: '', newestSignedAt: 0 }, 'active');
    liveness.putInOrder();
  }
  const ids = liveness
    .walk(5)
    .take(10)
    .map(({ id }) => id);
  assert.deepEqual(ids, ['c', 'a', 'b']);
  assert.equal(liveness.activeCount(5), 3);
});

test('a large batch is stored in parts, and its range with the last of them', async () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  function touch(id: number): void {
    liveness.touch(`c-${id}`, { at: 1, status: 'ok', remoteAddr: '', chain: 0 });
  }
  const calls: [rows: number, times: readonly TimeRange[] | null][] = [];
  const ids = new Set<string>();
  const writer = createContactWriter({
    liveness,
    store: {
      async touchMany(rows, times) {
        calls.push([rows.length, times]);
        for (const { id } of rows) ids.add(id);
        // Nodes that call in the meantime join the batch only as far as there is room.
        for (let id = 0; id < 400; id += 1) touch(calls.length * 1000 + id);
      },
    },
    replay: {
      isBeyondStoredRange: () => false,
      rangesToStore: (now) => [[now, now + calls.length]],
      rangesStored: () => calls.push([-1, null]),
    },
    now: () => 7,
    failed: (cause) => assert.ifError(cause),
  });
  for (let id = 0; id < 1200; id += 1) touch(id);
  await writer.flush();
  assert.deepEqual(calls, [
    [500, null],
    [500, null],
    [500, [[7, 9]]],
    [-1, null],
  ]);
  assert.ok(Array.from({ length: 1200 }, (_, id) => `c-${id}`).every((id) => ids.has(id)));

  calls.length = 0;
  for (let id = 0; id < 20_000; id += 1) touch(id);
  await writer.flush();
  assert.equal(calls.length, 17, '16 parts, however many rows there are');
});

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');

const happening = fc.oneof(
  fc.record({ what: fc.constant('touch' as const), id }),
  fc.record({ what: fc.constant('retire' as const), id }),
  fc.record({ what: fc.constant('wait' as const), for: fc.integer({ min: 1, max: WINDOW }) }),
  fc.record({ what: fc.constant('take' as const), limit: fc.integer({ min: 1, max: 3 }) }),
);

test('a walk visits what was active when it began, as it was then, through any changes', () => {
  fc.assert(
    fc.property(fc.array(id), fc.array(happening, { maxLength: 40 }), (before, meanwhile) => {
      const liveness = createLiveness(WINDOW, createCertificateNumbers());
      let now = 0;
      const touch = (id: string) => {
        now += 1;
        liveness.touch(id, { at: now, status: `at ${now}`, remoteAddr: '', chain: 0 });
      };
      for (const id of before) touch(id);
      const expected = liveness.walk(now).take(100).map(sightOf);

      const walk = liveness.walk(now);
      const visited: (readonly unknown[])[] = [];
      for (const event of meanwhile) {
        if (event.what === 'touch') touch(event.id);
        else if (event.what === 'retire') liveness.retire(event.id);
        else if (event.what === 'take') visited.push(...walk.take(event.limit).map(sightOf));
        else now += event.for;
        liveness.activeCount(now);
      }
      for (let rest = walk.take(3); rest.length > 0; rest = walk.take(3)) {
        visited.push(...rest.map(sightOf));
      }
      assert.equal(walk.count, expected.length);
      assert.deepEqual(new Set(visited.map(String)), new Set(expected.map(String)));
      assert.equal(visited.length, expected.length);
    }),
    { numRuns: 500 },
  );
});

function sightOf({ id, lastSeen, status, remoteAddr }: ContactView): readonly unknown[] {
  return [id, lastSeen, status, remoteAddr];
}

test('a walk that was ended visits nothing more', () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  for (const id of ['a', 'b']) liveness.touch(id, { at: 1, status: '', remoteAddr: '', chain: 0 });
  const walk = liveness.walk(1);
  assert.equal(walk.take(1).length, 1);
  walk.end();
  liveness.retire('a');
  assert.deepEqual(walk.take(1), []);
});

test('the floor of a node without a window applies before and after its first claim', () => {
  const windows = createNonceWindows(WINDOW, (nodeKey) => (nodeKey === 'known' ? 50 : 0));
  assert.equal(windows.check('known', 'n1', 50), 'stale_timestamp');
  assert.equal(windows.check('known', 'n1', 51), 'fresh');
  assert.equal(windows.check('other', 'n1', 1), 'fresh');
  windows.claim('known', 'n1', 51, 51);
  assert.equal(windows.check('known', 'n1', 52), 'nonce_replay');
  assert.equal(windows.check('known', 'n2', 50), 'stale_timestamp');
});

test('a window holds 256 nonces through all its growth, and refuses what is older than those', () => {
  const windows = createNonceWindows(WINDOW, () => 0);
  for (let i = 1; i <= 300; i += 1) {
    assert.equal(windows.check('node', `n${i}`, i), 'fresh', `${i}`);
    windows.claim('node', `n${i}`, i, i);
  }
  for (let i = 45; i <= 300; i += 1) {
    assert.equal(windows.check('node', `n${i}`, 1000), 'nonce_replay', `${i}`);
  }
  assert.equal(windows.check('node', 'n1', 44), 'stale_timestamp');
  assert.equal(windows.check('node', 'another', 45), 'fresh');
});

test('the index of certificates knows all certificates of a key, for as many keys as there are', () => {
  const numbers = createCertificateNumbers();
  const subjects = createSubjects(numbers);
  const index = createCertificateIndex({ subjects, numbers, seed: 1 });
  subjects.follow({ certificate: { decided: index.add } });
  const restore = (id: string, nodePublicKey: string, version: number) => {
    const context = { nodePublicKey, issuedAt: 0, expiresAt: 10, supersededFrom: null };
    subjects.restore('certificate', id, { version, value: 'issued', context: context as never });
  };
  for (let i = 0; i < 3000; i += 1) restore(`c-${i}`, `key-${i}`, 1);
  restore('second', 'key-7', 1);
  restore('third', 'key-7', 2);
  restore('second', 'key-7', 2);
  assert.deepEqual(index.ownedBy('key-7').sort(), ['c-7', 'second', 'third']);
  for (let i = 8; i < 3000; i += 1) assert.deepEqual(index.ownedBy(`key-${i}`), [`c-${i}`]);
  assert.deepEqual(index.ownedBy('nobody'), []);
  assert.deepEqual(index.liveOf('key-7', 9).sort(), ['c-7', 'second', 'third']);
  assert.deepEqual(index.liveOf('key-7', 10), []);
  assert.deepEqual(index.liveOf('nobody', 9), []);
});
