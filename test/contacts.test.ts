/** When nodes last made contact, as counts for operators [core-4-23]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import Value from 'typebox/value';
import { createContactBins } from '../src/authority/certificates/contact-counts.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { type ContactBin, Contacts } from '../src/protocol/rows/certificate.ts';
import { descriptionTest, isLabel, isNodeName } from '../src/protocol/rows/node-description.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
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
import { sharedAuthority } from './support/shared-authority.ts';

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
