/** Batches of invites, as operators create, read and withdraw them [core-4-7], [core-4-18]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Authority } from '../src/authority/authority.ts';
import { createInviteBatches, listInvites, withdrawInviteBatch } from '../src/authority/invites.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { SortedTexts } from '../src/authority/subjects/sorted-texts.ts';
import { createSubjects } from '../src/authority/subjects/subjects.ts';
import { UnitOfWork } from '../src/authority/subjects/unit-of-work.ts';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { valuesExcept } from './support/hostile.ts';
import {
  auditEvents,
  invite,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
} from './support/requests.ts';
import { DAY } from './support/simulated-network.ts';

/** For tests that have batches of their own. */
const shared = sharedAuthority();

const WITHDRAW = '/admin/invites/withdraw';

const LABELS = ['!', 'b'.repeat(64), 'field team  7', '50% of a&b=c+d #1?', '__proto__'];
const NO_LABELS = [
  ...['b'.repeat(65), ' team', 'team ', ' ', 'team\n', 'a\tb', 'a\x7fb', 'größe'],
  ...valuesExcept('a string', 'null').map(([, value]) => value),
];

function list(na: TestAuthority, query: { readonly [name: string]: string }): Promise<Received> {
  const path = `/admin/invites?${new URLSearchParams(query)}`;
  return operate(na, path, {}, { method: 'GET', operator: na.standard });
}

function withdraw(na: TestAuthority, body: JsonObject): Promise<Received> {
  return operate(na, WITHDRAW, body, { operator: na.standard });
}

function join(na: TestAuthority, token: string): Promise<Received> {
  return nodeRequest(na, '/join', newKey(), { invite_token: token });
}

function fingerprintOf(token: string): string {
  return sha256Hex(token).slice(0, 16);
}

async function tokensOf(na: TestAuthority, terms: JsonObject): Promise<string[]> {
  const answer = await operate(na, '/admin/invite', terms, { operator: na.standard });
  assert.equal(outcome(answer), '200');
  return answer.body.tokens.map(({ token_id }: { token_id: string }) => token_id);
}

/** The number of the batch's invites with each status. */
async function statuses(na: TestAuthority, batch: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const row of (await list(na, { batch })).body.invites) {
    assert.equal(row.batch, batch);
    counts[row.status] = (counts[row.status] ?? 0) + 1;
  }
  return counts;
}

test('the invites of one request share their roles and labels, also after a restart', () => {
  const subjects = createSubjects(createCertificateNumbers());
  const unit = new UnitOfWork(subjects, 0);
  const given = () => ({ roles: ['role:client'], labels: ['env=production', 'rack=r12'] });
  const invite = { maxValidityHours: 1, createdAt: 0, expiresAt: 1, recipient: null };
  for (const id of ['a', 'b']) {
    const terms = { ...invite, ...given(), usedAt: null, usedBy: null };
    unit.send('invite', id, { type: 'create', invite: terms });
  }
  subjects.decide(unit);
  subjects.settle(unit);
  const [a, b] = ['a', 'b'].map((id) => subjects.committed('invite', id));
  assert.ok(a !== undefined && b !== undefined);
  subjects.restore('invite', 'c', { ...a, context: { ...a.context, ...given() } });
  const c = subjects.committed('invite', 'c');
  for (const { context } of [b, c ?? b]) {
    assert.deepEqual(context.labels, given().labels);
    assert.equal(context.labels, a.context.labels);
    assert.equal(context.roles, a.context.roles);
  }
});

test('a batch may be any short printable label, and may be reused', async () => {
  const na = await shared();
  await invite(na);
  for (const batch of LABELS) {
    const tokens = [await invite(na, { batch }), ...(await tokensOf(na, { batch, count: 2 }))];
    const { count, invites } = (await list(na, { batch })).body;
    assert.deepEqual(
      invites.map((row: JsonObject) => [row.token_fingerprint, row.batch, row.status]),
      tokens.map((token) => [fingerprintOf(token), batch, 'unused']).sort(),
    );
    assert.equal(count, 3);
    assert.deepEqual((await withdraw(na, { batch })).body, { batch, withdrawn: 3, remaining: 0 });
  }
});

test('an invalid label is refused wherever a batch is named, after count and after status', async () => {
  await using na = await startTestAuthority();
  for (const batch of NO_LABELS) {
    const create = (terms: JsonObject) => operate(na, '/admin/invite', terms);
    assert.equal(outcome(await create({ batch })), '400 invalid_batch', `${batch}`);
    assert.equal(outcome(await create({ batch, count: 0 })), '400 invalid_count');
    assert.equal(outcome(await withdraw(na, { batch })), '400 invalid_batch', `${batch}`);
    if (typeof batch !== 'string' || batch === '') continue;
    assert.equal(outcome(await list(na, { batch })), '400 invalid_batch', batch);
    assert.equal(outcome(await list(na, { batch, status: 'lost' })), '400 invalid_status');
  }
  for (const body of [{}, { batch: null }]) {
    assert.equal(outcome(await withdraw(na, body)), '400 invalid_batch', 'it is required there');
  }
  assert.deepEqual(auditEvents(na), []);
});

test('without a batch, or with null, an invite belongs to none', async () => {
  await using na = await startTestAuthority();
  for (const terms of [{}, { batch: null }]) await invite(na, terms);
  const inOne = await invite(na, { batch: 'team' });
  const all = (await list(na, { batch: '' })).body.invites;
  assert.deepEqual(all.map((row: JsonObject) => row.batch).sort(), [null, null, 'team'].sort());
  assert.deepEqual(
    auditEvents(na).map(({ details }) => [details.token_fingerprint, 'batch' in details]),
    auditEvents(na).map(({ details }) => [
      details.token_fingerprint,
      details.token_fingerprint === fingerprintOf(inOne),
    ]),
  );
  assert.equal(auditEvents(na).at(-1)?.details.batch, 'team');
});

test('a batch is withdrawn as a whole, including expired invites; used ones and other batches stay', async () => {
  await using na = await startTestAuthority();
  const batch = 'field-team-7';
  await tokensOf(na, { batch, count: 2, token_expiry_hours: 1 });
  const [used = '', leaked = ''] = await tokensOf(na, { batch, count: 5 });
  const [alone = '', other = ''] = [await invite(na), await invite(na, { batch: 'field-team-8' })];
  assert.equal(outcome(await join(na, used)), '200');
  na.clock.advance(2 * HOUR);
  assert.deepEqual(await statuses(na, batch), { expired: 2, consumed: 1, unused: 4 });
  const before = auditEvents(na).length;
  assert.deepEqual((await withdraw(na, { batch })).body, { batch, withdrawn: 6, remaining: 0 });
  const audited = auditEvents(na).slice(before);
  const rows = (await list(na, { batch, status: 'withdrawn' })).body.invites;
  assert.deepEqual(
    audited,
    rows.map((row: JsonObject) => ({
      type: 'invite_withdrawn',
      details: { token_fingerprint: row.token_fingerprint, remote_addr: '127.0.0.1' },
    })),
  );
  assert.equal(new Set(rows.map((row: JsonObject) => row.withdrawn_at)).size, 1, 'at one instant');
  assert.equal(rows[0].withdrawn_by, 'ops-standard');
  assert.deepEqual(await statuses(na, batch), { withdrawn: 6, consumed: 1 });
  assert.equal(outcome(await join(na, leaked)), '403 invalid_invite_token');
  for (const token of [alone, other]) assert.equal(outcome(await join(na, token)), '200');

  assert.deepEqual((await withdraw(na, { batch })).body, { batch, withdrawn: 0, remaining: 0 });
  assert.equal(auditEvents(na).filter(({ type }) => type === 'invite_withdrawn').length, 6);
});

test('of a batch, only the invites with the given fingerprints are withdrawn', async () => {
  await using na = await startTestAuthority();
  const batch = 'team';
  const [used = '', ...shown] = await tokensOf(na, { batch, count: 3 });
  const [later, other] = [await invite(na, { batch }), await invite(na, { batch: 'other' })];
  await join(na, used);
  const fingerprints = [used, ...shown, other].map(fingerprintOf);
  const left = { batch, withdrawn: 2, remaining: 1 };
  assert.deepEqual((await withdraw(na, { batch, fingerprints })).body, left);
  for (const token of shown)
    assert.equal(outcome(await join(na, token)), '403 invalid_invite_token');
  for (const token of [later, other]) assert.equal(outcome(await join(na, token)), '200');
  for (const wrong of ['0', [1], ['0'], [fingerprintOf(used).toUpperCase()]]) {
    const answer = await withdraw(na, { batch, fingerprints: wrong });
    assert.equal(outcome(answer), '422 request_validation_failed');
  }
  const none = { batch, withdrawn: 0, remaining: 0 };
  assert.deepEqual((await withdraw(na, { batch, fingerprints: [] })).body, none);
});

test('a batch without invites is not found, and lists nothing', async () => {
  await using na = await startTestAuthority();
  await invite(na, { batch: 'team' });
  for (const batch of ['Team', 'tea', 'team-2', 'constructor']) {
    assert.equal(outcome(await withdraw(na, { batch })), '404 batch_not_found');
    assert.deepEqual((await list(na, { batch })).body, { count: 0, invites: [] });
  }
});

test('one call withdraws 1,000 invites, and reports how many are left for the next', async () => {
  await using na = await startTestAuthority();
  const batch = 'everybody';
  await tokensOf(na, { batch, count: 1000 });
  const last = await invite(na, { batch });
  const answers: JsonObject[] = [];
  for (let call = 0; call < 3; call += 1) answers.push((await withdraw(na, { batch })).body);
  assert.deepEqual(answers, [
    { batch, withdrawn: 1000, remaining: 1 },
    { batch, withdrawn: 1, remaining: 0 },
    { batch, withdrawn: 0, remaining: 0 },
  ]);
  assert.deepEqual(await statuses(na, batch), { withdrawn: 1001 });
  assert.equal(outcome(await join(na, last)), '403 invalid_invite_token');
});

test('a batch is known after a restart, and invites added after a withdrawal are unused', async () => {
  await using na = await startTestAuthority();
  const batch = 'team';
  const [used = '', single = ''] = await tokensOf(na, { batch, count: 4 });
  await join(na, used);
  await operate(na, `/admin/invites/${fingerprintOf(single)}/withdraw`);
  await using again = await na.restart();
  const known = { consumed: 1, withdrawn: 1, unused: 2 };
  assert.deepEqual(await statuses(again, batch), known);
  assert.deepEqual((await withdraw(again, { batch })).body, { batch, withdrawn: 2, remaining: 0 });
  await using third = await again.restart();
  assert.deepEqual(await statuses(third, batch), { consumed: 1, withdrawn: 3 });
  await invite(third, { batch });
  assert.deepEqual((await withdraw(third, { batch })).body, { batch, withdrawn: 1, remaining: 0 });
});

test('joins and withdrawals at the same time: each invite is either used or withdrawn', async () => {
  const na = await shared();
  const batch = 'raced';
  const tokens = await tokensOf(na, { batch, count: 30 });
  const withdrawals: Promise<Received>[] = [];
  const joins = tokens.map((token, at) => {
    if (at % 10 === 5) withdrawals.push(withdraw(na, { batch }));
    return join(na, token);
  });
  const used = (await Promise.all(joins)).filter(({ status }) => status === 200).length;
  const answers = await Promise.all(withdrawals);
  const withdrawn = answers.reduce((sum, { body }) => sum + body.withdrawn, 0);
  assert.equal(used + withdrawn, 30);
  const { consumed = 0, ...others } = await statuses(na, batch);
  assert.equal(consumed, used);
  assert.deepEqual(others, withdrawn === 0 ? {} : { withdrawn });
});

test('a batch is gone once retention has removed its last invite', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RETENTION_INVITE_DAYS: '3' } });
  const batch = 'team';
  await tokensOf(na, { batch, count: 2, token_expiry_hours: 24 });
  await invite(na, { batch, token_expiry_hours: 48 });
  const wait = async (days: number) => {
    na.clock.advance(days * DAY);
    await na.sweep();
    await na.sweep();
  };
  await wait(4.5);
  assert.deepEqual(await statuses(na, batch), { expired: 1 });
  await wait(1);
  assert.deepEqual((await list(na, { batch })).body, { count: 0, invites: [] });
  assert.equal(outcome(await withdraw(na, { batch })), '404 batch_not_found');
  await invite(na, { batch });
  assert.deepEqual((await withdraw(na, { batch })).body, { batch, withdrawn: 1, remaining: 0 });
});

test('pages of a batch contain each of its invites once, also by status', async () => {
  await using na = await startTestAuthority();
  const batch = 'team';
  const tokens = await tokensOf(na, { batch, count: 7 });
  await tokensOf(na, { batch: 'others', count: 20 });
  await join(na, tokens[0] ?? '');
  for (const [filter, expected] of [
    [{ batch }, tokens],
    [{ batch, status: 'unused' }, tokens.slice(1)],
  ] as const) {
    const listed: string[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const { body }: Received = await list(na, { ...filter, limit: '2', cursor });
      listed.push(...body.invites.map((row: JsonObject) => row.token_fingerprint));
      cursor = body.next_cursor;
    }
    assert.deepEqual(listed, expected.map(fingerprintOf).sort());
  }
});

/** The parts of an authority that know its invites, and the number of invites that were looked up. */
function invitesInMemory() {
  const subjects = createSubjects(createCertificateNumbers());
  const inviteBatches = createInviteBatches();
  const inviteIds = new SortedTexts();
  subjects.follow({
    invite: {
      decided: inviteBatches.put,
      removed: inviteBatches.remove,
      added: (id) => inviteIds.add(id),
    },
  });
  const lookups = { count: 0 };
  const counted = {
    ...subjects,
    committed: ((kind, id) => {
      lookups.count += 1;
      return subjects.committed(kind, id);
    }) as typeof subjects.committed,
  };
  const na = { subjects: counted, inviteIds, inviteBatches } as unknown as Authority;
  return { subjects, inviteBatches, na, lookups };
}

function stored(batch: string | undefined, value = 'unused') {
  const terms = { roles: [], maxValidityHours: 1, createdAt: 0, expiresAt: 1, recipient: null };
  const context = { ...terms, usedAt: null, usedBy: null, ...(batch !== undefined && { batch }) };
  return { version: 1, value, context };
}

test('the cost of a batch does not depend on other invites, nor on those that were used', () => {
  const { subjects, na, lookups } = invitesInMemory();
  for (let each = 0; each < 30_000; each += 1) {
    const batch = each % 2 === 0 ? 'large' : undefined;
    const value = each < 29_000 ? 'consumed' : 'unused';
    subjects.restore('invite', sha256Hex(String(each)), stored(batch, value));
  }
  for (const id of ['one', 'two']) subjects.restore('invite', sha256Hex(id), stored('small'));
  const page = listInvites(
    na,
    {
      batch: 'small',
      status: null,
      fingerprint: null,
      name: [],
      label: [],
      after: null,
      limit: 9,
    },
    0,
  );
  assert.deepEqual([(page as JsonObject).next, (page as JsonObject).count], [null, 2]);
  assert.equal(lookups.count, 2);
  const unit = new UnitOfWork(subjects, 0);
  const operator = { keyId: 'ops', remoteAddr: '127.0.0.1' };
  const withdrawn = withdrawInviteBatch(na, unit, { batch: 'large', fingerprints: null }, operator);
  assert.deepEqual(withdrawn, { batch: 'large', withdrawn: 500, remaining: 0 });
  assert.equal(lookups.count, 2);
});

test('batches match their invites, whatever is decided, removed and read again', () => {
  const step = fc.record({
    id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    batch: fc.constantFrom('one', 'two', undefined),
    value: fc.constantFrom('unused', 'consumed', 'withdrawn', 'removed'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { subjects, inviteBatches } = invitesInMemory();
      const model = new Map<string, ReturnType<typeof stored>>();
      for (const { id, batch, value } of steps) {
        const known = model.get(id);
        if (value === 'removed') {
          if (known === undefined) continue;
          const removal = { writes: [], removals: [{ kind: 'invite', id, replaces: 1 }] };
          subjects.decide(removal);
          subjects.settle(removal);
          model.delete(id);
          continue;
        }
        const next = stored(known === undefined ? batch : known.context.batch, value);
        subjects.restore('invite', id, next);
        model.set(id, next);
      }
      for (const batch of ['one', 'two']) {
        const ids = [...model].filter(([, { context }]) => context.batch === batch).sort();
        const unused = ids.filter(([, { value }]) => value === 'unused');
        const found = inviteBatches.find(batch);
        assert.deepEqual(
          [...(found?.ids.after('') ?? [])],
          ids.map(([id]) => id),
        );
        assert.deepEqual(
          [...(found?.unused.after('') ?? [])],
          unused.map(([id]) => id),
        );
        assert.equal(found?.unused.size ?? 0, unused.length);
        assert.equal(found === undefined, ids.length === 0);
      }
    }),
  );
});
