/** The filters of public lists find what matches without looking at everything else. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import fc from 'fast-check';
import type { Attestation } from '../machines/attestation.ts';
import { createRecordLists } from '../src/authority/recognition/record-lists.ts';
import { listReply } from '../src/edge/operations/listing.ts';
import { isPiecewise } from '../src/edge/reply.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { testClock } from './support/clock.ts';
import { cpuOf } from './support/cpu.ts';
import { networkFolder } from './support/folders.ts';
import { seedTrust, sovereignName } from './support/large-trust.ts';
import { get } from './support/requests.ts';

test('a filter finds what reading everything would find, in the same order', () => {
  const NAMES = ['a', 'b', 'c'];
  const name = fc.constantFrom(...NAMES);
  const step = fc.record({
    id: fc.nat(12),
    issuer: name,
    subject: name,
    issuedAt: fc.nat(5),
    isRevoked: fc.boolean(),
  });
  const sovereigns = [...NAMES, 'nobody', null];
  const filters = [null, 'active', 'revoked', 'unheard'].flatMap((status) =>
    sovereigns.flatMap((issuer) => sovereigns.map((subject) => ({ issuer, subject, status }))),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.nat(40), (steps, restored) => {
      const lists = createRecordLists<Attestation>();
      const model = new Map<
        string,
        { at: number; issuer: string; subject: string; status: string }
      >();
      for (const [index, { id: number, issuer, subject, issuedAt, isRevoked }] of steps.entries()) {
        if (index === restored) lists.endLoading();
        const id = String(number);
        const known = model.get(id);
        const of = known ?? { at: issuedAt, issuer, subject, status: 'active' };
        const status = known?.status === 'revoked' || isRevoked ? 'revoked' : 'active';
        model.set(id, { ...of, status });
        const revokedAt = status === 'revoked' ? 9 : null;
        const context = { ...of, issuedAt: of.at, json: '', revokedAt, revocationReason: null };
        lists.put(id, { context });
      }
      if (restored >= steps.length) lists.endLoading();
      const all = [...model].sort(
        ([a, { at: first }], [b, { at: then }]) => first - then || (a < b ? -1 : 1),
      );
      for (const asked of filters) {
        const expected = all.filter(
          ([, each]) =>
            (asked.issuer ?? each.issuer) === each.issuer &&
            (asked.subject ?? each.subject) === each.subject &&
            (asked.status ?? each.status) === each.status,
        );
        const { items, passes } = lists.matching(asked);
        assert.deepEqual(
          items.filter(passes).map(({ id }) => id),
          expected.map(([id]) => id),
        );
      }
    }),
  );
});

test('a list is read a page at a time, even if no row passes, so that it ends with its client', async () => {
  let pages = 0;
  const page = () => {
    pages += 1;
    return { ok: true as const, json: `{"next":[${pages},""],"count":0,"rows":[]}` };
  };
  const reply = await listReply(
    { member: 'rows', isCounted: true, page },
    { query: {}, client: { aborted: false } },
  );
  assert.ok(isPiecewise(reply.body));
  assert.equal(await reply.body.next(), '{"rows":[');
  for (const read of [2, 3, 4]) {
    assert.equal(await reply.body.next(), '');
    assert.equal(pages, read);
  }
});

suite('with 40,000 attestations and 4,000 treaties', () => {
  const folder = networkFolder('alpha');
  let na: TestAuthority;
  before(async () => {
    const clock = testClock();
    await seedTrust(folder.path, clock.now(), { treaties: 4000, attestations: 40_000 });
    na = await startTestAuthority({ dataDir: folder.path, clock });
  });
  after(async () => {
    await na?.[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  /** A request takes 2 ms here; reading all attestations takes 100. */
  const MOST_MS = 50;
  const TIMES = 10;
  const one = encodeURIComponent(sovereignName(5));
  for (const [path, rows] of [
    ['/attestations?subject_id=nobody', 0],
    ['/attestations?subject_id=agent-7', 1],
    ['/attestations?subject_id=agent-7&status=active&issuer_sovereign_id=alpha', 1],
    ['/attestations?issuer_sovereign_id=nobody', 0],
    ['/attestations?issuer_sovereign_id=alpha&status=revoked', 0],
    ['/attestations?status=unheard', 0],
    ['/attestations?subject_id=nobody&limit=1000', 0],
    ['/recognition-treaties?subject_sovereign_id=nobody', 0],
    [`/recognition-treaties?issuer_sovereign_id=${one}`, 10],
    [`/recognition-treaties?issuer_sovereign_id=${one}&status=revoked`, 0],
    ['/agents?capability=nothing', 0],
  ] as const) {
    test(`${path} costs next to nothing`, async () => {
      const { body } = await get(na, path);
      assert.equal(body.count, rows);
      assert.equal(body.next_cursor, undefined);
      const cpu = await cpuOf(async () => {
        for (let i = 0; i < TIMES; i += 1) await get(na, path);
      });
      assert.ok(cpu / TIMES < MOST_MS, `${cpu / TIMES} ms of CPU`);
    });
  }
});
