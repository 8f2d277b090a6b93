/** Long lists are sent whole in pieces, or a page at a time; no page is expensive, regardless of the request. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { changesDashboard } from '../src/authority/audit/recent-changes.ts';
import { createDashboardPace } from '../src/authority/dashboard/dashboard.ts';
import { pageOf } from '../src/authority/engine/page.ts';
import { createOrderedList } from '../src/base/ordered-list.ts';
import { sortedInSlices, withoutPause } from '../src/base/work.ts';
import type { ListPlace } from '../src/protocol/contract/inputs.ts';
import type { SealedEntry, SubjectWrite } from '../src/store/store.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import { get, operate, outcome, send } from './support/requests.ts';
import { attest, issued, recognize, revokeAttestation } from './support/trust.ts';

/** The rows of a list, read page by page. */
async function paged(na: TestAuthority, path: string, member: string, limit: number) {
  const rows: unknown[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 1000; pages += 1) {
    const separator = path.includes('?') ? '&' : '?';
    const from = cursor === undefined ? '' : `&cursor=${cursor}`;
    const { status, body } = await get(na, `${path}${separator}limit=${limit}${from}`);
    assert.equal(status, 200);
    assert.ok(body[member].length <= limit);
    assert.equal(body.count ?? body[member].length, body[member].length);
    rows.push(...body[member]);
    cursor = body.next_cursor;
    if (cursor === undefined) return rows;
  }
  throw new Error('The list has no end');
}

test('600 attestations are sent in pieces, with the same rows as page by page', async () => {
  await using na = await startTestAuthority();
  for (let i = 0; i < 12; i += 1) {
    const some = Array.from({ length: 50 }, (_, n) => attest(na, { subject_id: `agent-${n % 7}` }));
    await Promise.all(some.map(issued));
    na.clock.advance(1);
  }
  const { body } = await get(na, '/attestations');
  assert.equal(body.count, 600);
  assert.equal(body.attestations.length, 600);
  assert.equal(body.next_cursor, undefined);
  const times = body.attestations.map((row: { attestation: { issued_at: string } }) =>
    Date.parse(row.attestation.issued_at),
  );
  assert.deepEqual(times, times.toSorted());
  for (const limit of [7, 250, 1000]) {
    assert.deepEqual(await paged(na, '/attestations', 'attestations', limit), body.attestations);
  }
  const filtered = '/attestations?subject_id=agent-3&status=active';
  const some = (await get(na, filtered)).body.attestations;
  assert.equal(some.length, 84);
  assert.deepEqual(await paged(na, filtered, 'attestations', 10), some);
  await using again = await na.restart();
  assert.deepEqual((await get(again, '/attestations')).body, body);
});

test('an attestation that is revoked between two pages is in its place, once', async () => {
  await using na = await startTestAuthority();
  const ids: unknown[] = [];
  for (let i = 0; i < 5; i += 1) ids.push((await issued(attest(na))).attestation_id);
  const first = (await get(na, '/attestations?limit=2')).body;
  for (const id of ids) await revokeAttestation(na, String(id));
  const rest = (await get(na, `/attestations?cursor=${first.next_cursor}`)).body;
  assert.deepEqual([first.count, rest.count], [2, 3]);
  const rows = [...first.attestations, ...rest.attestations];
  const listed = rows.map(({ attestation }) => attestation.attestation_id);
  assert.deepEqual(new Set(listed), new Set(ids));
});

test('treaties, agents and the policy history are read page by page too', async () => {
  await using na = await startTestAuthority();
  for (let i = 0; i < 5; i += 1) {
    await issued(recognize(na, { subject_sovereign_id: `s-${i}` }));
    await operate(na, '/admin/policy', { policy_id: `p-${i}` });
    na.clock.advance(MINUTE);
  }
  const { body } = await get(na, '/recognition-treaties');
  assert.equal(body.count, 5);
  const pages = await paged(na, '/recognition-treaties', 'recognition_treaties', 2);
  assert.deepEqual(pages, body.recognition_treaties);
  assert.deepEqual(await paged(na, '/agents?capability=x', 'agents', 2), []);
  const history = await operate(na, '/admin/policy/history?limit=2', {}, { method: 'GET' });
  assert.deepEqual(
    history.body.versions.map(({ policy_id }: { policy_id: string }) => policy_id),
    ['p-4', 'p-3'],
  );
  assert.equal(typeof history.body.next_cursor, 'string');
});

test('an invalid limit or cursor is refused', async () => {
  await using na = await startTestAuthority();
  for (const [query, expected] of [
    ['limit=0', '400 invalid_limit'],
    ['limit=1001', '400 invalid_limit'],
    ['limit=-1', '400 invalid_limit'],
    ['limit=1.5', '400 invalid_limit'],
    ['cursor=W10', '400 invalid_cursor'],
    ['cursor=%00', '400 invalid_cursor'],
    ['limit=1000', '200'],
  ] as const) {
    for (const path of ['/attestations', '/recognition-treaties']) {
      assert.equal(outcome(await send(na, 'GET', `${path}?${query}`)), expected, query);
    }
    assert.equal(outcome(await get(na, `/agents?capability=x&${query}`)), expected, query);
  }
});

test('a page examines at most 2,000 rows, and is about 64 KB long', () => {
  const items = Array.from({ length: 100_000 }, (_, at) => ({ at, id: '' }));
  let lookedAt = 0;
  const list = {
    items,
    placeOf: (item: ListPlace) => item,
    compare: (a: ListPlace, b: ListPlace) => a.at - b.at,
    row: () => 'x'.repeat(1000),
    lengthOf: () => 1000,
  };
  const rare = pageOf(
    {
      ...list,
      passes({ at }) {
        lookedAt += 1;
        return at % 1000 === 7;
      },
    },
    { after: { at: 999, id: '' }, limit: 250 },
  );
  assert.equal(lookedAt, 2000);
  const { next, count } = JSON.parse(JSON.stringify(rare));
  assert.deepEqual([next, count], [[2999, ''], 2]);
  const all = pageOf({ ...list, passes: () => true }, { after: null, limit: 1000 });
  assert.equal(JSON.parse(JSON.stringify(all)).count, 66);
});

test('an ordered list stays in order through any additions and removals', () => {
  const list = createOrderedList<number>((a, b) => a - b);
  const model = new Set<number>();
  for (let i = 0; i < 2000; i += 1) {
    const value = (i * 7919) % 1009;
    if (model.has(value)) {
      model.delete(value);
      list.remove(value);
    } else {
      model.add(value);
      list.add(value);
    }
    if (i % 97 === 0)
      assert.deepEqual(
        list.items(),
        [...model].sort((a, b) => a - b),
      );
  }
  list.remove(-1);
  assert.deepEqual(
    list.items(),
    [...model].sort((a, b) => a - b),
  );
});

test('sorting in slices gives what sorting at once does', () => {
  const byLength = (a: string, b: string) => a.length - b.length;
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 6 })),
      fc.integer({ min: 1, max: 9 }),
      (items, n) => {
        assert.deepEqual(
          withoutPause(sortedInSlices(items, n, byLength)),
          items.toSorted(byLength),
        );
      },
    ),
  );
});

test('the dashboard is rebuilt when its contents have changed, not for refusals', () => {
  const entry = (event_type: string) => ({ entry: { event_type } }) as SealedEntry;
  const write = (kind: string) => ({ kind }) as SubjectWrite;
  for (const event of ['join_rejected', 'node_auth_failed', 'admin_auth_failed']) {
    assert.equal(changesDashboard([], [entry(event)]), false, event);
  }
  assert.equal(changesDashboard([write('invite')], []), false);
  assert.equal(changesDashboard([write('certificate')], []), true);
  assert.equal(changesDashboard([], [entry('recognition_treaty_issued')]), true);
  assert.equal(changesDashboard([], [entry('trust_cycle_completed')]), true);
});

test('building the dashboard takes a twentieth of the time at most, and readers share builds', async () => {
  let now = 0;
  let builds = 0;
  const pace = createDashboardPace(() => now);
  const build = () => {
    builds += 1;
    now += 2;
    return undefined;
  };
  assert.equal(pace.take(build), undefined, 'the first is built at once');
  const waiting = [pace.take(build), pace.take(build), pace.take(build)];
  assert.equal(builds, 1);
  await Promise.all(waiting);
  assert.equal(builds, 2);
  now += 40;
  assert.equal(pace.take(build), undefined);
  assert.equal(builds, 3);
});
