/**
 * Questions about trust other than its current path, compared with plain searches over small graphs [core-6-3-1].
 * test/trust-explanations.test.ts asks a server.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Treaty } from '../machines/recognition-treaty.ts';
import {
  createRecognitionIndex,
  type RecognitionIndex,
} from '../src/authority/recognition/recognition-index.ts';
import {
  type ExplanationText,
  explainTrust,
  MAX_CANDIDATES,
  MAX_CUT,
} from '../src/authority/recognition/trust-explanation.ts';
import { copyGraph } from '../src/authority/recognition/trust-graph.ts';
import {
  findTrustPath,
  findTrustPathIn,
  trustView,
} from '../src/authority/recognition/trust-path.ts';
import { formatInstant } from '../src/base/timestamp.ts';

const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;

/** A treaty as the test sees it; instants are in hours from the start. */
interface Given {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly issued: number;
  readonly expires: number;
  readonly revoked: number | null;
  readonly reason: string;
}

interface Question {
  readonly from: string;
  readonly to: string;
  readonly now: number;
  readonly asOf: number | null;
  readonly without: ReadonlySet<string>;
}

const LAST_HOUR = 8;
const NAMES = ['a', 'b', 'c', 'd', 'e'];

const name = fc.constantFrom(...NAMES);
const hour = fc.integer({ min: 0, max: LAST_HOUR });

const treaties = fc
  .uniqueArray(
    fc.record({
      id: fc.stringMatching(/^[a-z]{2}$/),
      from: name,
      to: name,
      issued: hour,
      lasts: fc.integer({ min: 1, max: 3 * LAST_HOUR }),
      revoked: fc.option(hour, { freq: 2 }),
      reason: fc.constantFrom('ended', 'renewed_by:other'),
    }),
    { maxLength: 12, selector: ({ id }) => id },
  )
  .map((drawn) =>
    drawn.map(({ lasts, ...given }): Given => {
      const revoked = given.revoked === null ? null : Math.max(given.issued, given.revoked);
      return { ...given, expires: given.issued + lasts, revoked };
    }),
  );

/** Most treaties are in force at the time of the question. */
const livelyTreaties = treaties.map((drawn) =>
  drawn.map((given, place) => (place % 4 === 0 ? given : { ...given, issued: 0, revoked: null })),
);

const cases = fc.oneof(treaties, livelyTreaties).chain((given) =>
  fc.record({
    given: fc.constant(given),
    question: fc.record({
      from: name,
      to: name,
      now: fc.constant(at(LAST_HOUR)),
      asOf: fc.option(hour.map(at)),
      without: fc
        .subarray(
          given.map(({ id }) => id),
          { maxLength: Math.min(2, given.length) },
        )
        .map((ids): ReadonlySet<string> => new Set(ids)),
    }),
  }),
);

function at(hours: number): number {
  return START + hours * HOUR;
}

function treatyOf({ id, from, to, issued, expires, revoked, reason }: Given): Treaty {
  return {
    json: JSON.stringify({ treaty_id: id, scope: { allowed_roles: [`role:${id}`] } }),
    issuer: from,
    subject: to,
    subjectKeys: [],
    issuedAt: at(issued),
    validFrom: formatInstant(at(issued)),
    expiresAt: at(expires),
    revokedAt: revoked === null ? null : at(revoked),
    revocationReason: revoked === null ? null : reason,
    followed: [],
  };
}

function indexOf(given: readonly Given[]): RecognitionIndex {
  const index = createRecognitionIndex();
  for (const each of given) index.putTreaty(each.id, treatyOf(each));
  index.endLoading();
  return index;
}

function asked(index: RecognitionIndex, { from, to, now, asOf, without }: Question) {
  return findTrustPathIn(trustView(now, asOf, without), index, from, to);
}

/** The explanation, computed slice by slice. */
function explained(index: RecognitionIndex, question: Question): ExplanationText {
  const graph = finished(copyGraph(index));
  assert.ok(graph !== null);
  return finished(
    explainTrust({
      graph,
      view: trustView(question.now, question.asOf, question.without),
      found: asked(index, question),
      source: index.sovereign(question.from)?.number ?? null,
      target: index.sovereign(question.to)?.number ?? null,
    }),
  );
}

function finished<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

/** Whether the treaty is in force at `time`, as known at the time of the question. */
function inForce(given: Given, { now, asOf, without }: Question, time = asOf ?? now): boolean {
  const known = asOf ?? Number.POSITIVE_INFINITY;
  const isRevoked = given.revoked !== null && at(given.revoked) <= known;
  const isIssued = at(given.issued) <= known;
  return isIssued && !isRevoked && !without.has(given.id) && time <= at(given.expires) - 1000;
}

/** Ids of the treaties on the first of the shortest paths; null if there is none. */
function plainPath(edges: readonly Given[], from: string, to: string): string[] | null {
  if (from === to) return null;
  const sorted = edges.toSorted(
    (a, b) => compare(a.from, b.from) || compare(a.to, b.to) || compare(a.id, b.id),
  );
  const queue: { readonly at: string; readonly path: readonly string[] }[] = [
    { at: from, path: [] },
  ];
  const visited = new Set([from]);
  for (const { at: here, path } of queue) {
    for (const edge of sorted) {
      if (edge.from !== here || visited.has(edge.to)) continue;
      if (edge.to === to) return [...path, edge.id];
      visited.add(edge.to);
      queue.push({ at: edge.to, path: [...path, edge.id] });
    }
  }
  return null;
}

/** Ids of the treaties on the path of the question, at `time` and without those that `ended`. */
function pathOf(
  given: readonly Given[],
  question: Question,
  { time, ended = [] }: { readonly time?: number; readonly ended?: readonly string[] } = {},
): string[] | null {
  const counting = given.filter(
    (each) => inForce(each, question, time) && !ended.includes(each.id),
  );
  return plainPath(counting, question.from, question.to);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** The number of hops to every sovereign that can be reached; nothing leads on from `end`. */
function plainHops(edges: readonly Given[], start: string, end: string): Map<string, number> {
  const hops = new Map([[start, 0]]);
  for (const [here, count] of hops) {
    if (here === end) continue;
    for (const { from, to } of edges) {
      if (from === here && !hops.has(to)) hops.set(to, count + 1);
    }
  }
  return hops;
}

function* subsetsOf<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  if (size === 0) yield [];
  else {
    for (const [place, first] of items.entries()) {
      for (const rest of subsetsOf(items.slice(place + 1), size - 1)) yield [first, ...rest];
    }
  }
}

const RUNS = { numRuns: 500 };

test('the path is that of a plain search over the treaties that count', () => {
  fc.assert(
    fc.property(cases, ({ given, question }) => {
      const path = pathOf(given, question);
      const answer = asked(indexOf(given), question);
      assert.equal(answer.trusted, path !== null);
      const ids = answer.path.map(({ treaty_id }) => treaty_id);
      if (path !== null) assert.deepEqual(ids, path);
    }),
    RUNS,
  );
});

test('without some treaties the answer is that of a graph that never had them', () => {
  fc.assert(
    fc.property(cases, ({ given, question }) => {
      const kept = given.filter(({ id }) => !question.without.has(id));
      const none = new Set<string>();
      assert.deepEqual(
        asked(indexOf(given), question),
        asked(indexOf(kept), { ...question, without: none }),
      );
    }),
    RUNS,
  );
});

test('for an earlier time the answer is that of the history until then', () => {
  fc.assert(
    fc.property(cases, hour.map(at), ({ given, question: { from, to, now } }, asOf) => {
      const replayed = createRecognitionIndex();
      for (const each of given) {
        if (at(each.issued) > asOf) continue;
        replayed.putTreaty(each.id, treatyOf({ ...each, revoked: null }));
        const isRevoked = each.revoked !== null && at(each.revoked) <= asOf;
        if (isRevoked) replayed.putTreaty(each.id, treatyOf(each));
      }
      replayed.endLoading();
      assert.deepEqual(
        asked(indexOf(given), { from, to, now, asOf, without: new Set() }),
        findTrustPath(replayed, from, to, asOf),
      );
    }),
    RUNS,
  );
});

test('the end of the cut ends the trust, and the end of fewer treaties does not', () => {
  fc.assert(
    fc.property(cases, ({ given, question }) => {
      const counting = given.filter((each) => inForce(each, question));
      const trustsWithout = (ended: readonly string[]) =>
        pathOf(given, question, { ended }) !== null;
      const { cut } = explained(indexOf(given), question);
      const ids = cut.treaties.map(({ treaty_id }) => treaty_id);
      assert.equal(cut.size, ids.length);
      assert.equal(cut.state, trustsWithout([]) ? 'found' : 'none');
      assert.equal(trustsWithout(ids), false);
      const all = counting.map(({ id }) => id);
      for (let size = 0; size < ids.length; size += 1) {
        for (const fewer of subsetsOf(all, size)) assert.equal(trustsWithout(fewer), true);
      }
      const served = { ...question, without: new Set([...question.without, ...ids]) };
      assert.equal(asked(indexOf(given), served).trusted, false);
    }),
    RUNS,
  );
});

test('of several smallest cuts it is the one nearest to the trusting sovereign', () => {
  fc.assert(
    fc.property(cases, ({ given, question }) => {
      const { from, to } = question;
      const counting = given.filter((each) => inForce(each, question));
      const { cut } = explained(indexOf(given), question);
      if (cut.state !== 'found') return;
      const reachWithout = (ended: readonly string[]): Map<string, number> =>
        plainHops(
          counting.filter(({ id }) => !ended.includes(id)),
          from,
          to,
        );
      const nearest = reachWithout(cut.treaties.map(({ treaty_id }) => treaty_id));
      for (const other of subsetsOf(
        counting.map(({ id }) => id),
        cut.size,
      )) {
        const reach = reachWithout(other);
        if (reach.has(to)) continue;
        for (const reached of nearest.keys()) assert.ok(reach.has(reached));
      }
    }),
    RUNS,
  );
});

test('trust and path last until the named instants, and not a millisecond longer', () => {
  fc.assert(
    fc.property(cases, ({ given, question }) => {
      const pathAt = (time: number) => pathOf(given, question, { time });
      const { trusted_until, path_until } = explained(indexOf(given), question);
      const path = pathAt(question.asOf ?? question.now);
      if (path === null) {
        assert.deepEqual([trusted_until, path_until], [null, null]);
        return;
      }
      const trusted = Date.parse(trusted_until ?? '');
      assert.notEqual(pathAt(trusted), null);
      assert.equal(pathAt(trusted + 1), null);
      const same = Date.parse(path_until ?? '');
      assert.deepEqual(pathAt(same), path);
      assert.notDeepEqual(pathAt(same + 1), path);
    }),
    RUNS,
  );
});

test('the candidates are the treaties that touch the search, each with the first test it fails', () => {
  fc.assert(
    fc.property(cases, ({ given, question }) => {
      const { candidates, candidate_count, more_candidates } = explained(indexOf(given), question);
      const expected = given.flatMap((each) => plainCandidate(given, each, question) ?? []);
      assert.deepEqual(
        candidates.map(({ treaty_id, failed_test, hops }) => [treaty_id, failed_test, hops]).sort(),
        expected.sort(),
      );
      assert.deepEqual([candidate_count, more_candidates], [expected.length, 0]);
    }),
    RUNS,
  );
});

/** Id, failed test and hops of a treaty, computed directly from the contract. */
function plainCandidate(given: readonly Given[], each: Given, question: Question) {
  const { from, to, without, asOf, now } = question;
  if (from === to || each.from === to || each.to === from) return null;
  const counting = given.filter((other) => inForce(other, question));
  const path = plainPath(counting, from, to);
  if (path?.includes(each.id) === true) return null;
  const isKnown = (sovereign: string) =>
    given.some((other) => other.from === sovereign || other.to === sovereign);
  const backwards = counting.map((other) => ({ ...other, from: other.to, to: other.from }));
  const before = isKnown(from) ? plainHops(counting, from, to).get(each.from) : undefined;
  const after = isKnown(to) ? plainHops(backwards, to, from).get(each.to) : undefined;
  if (before === undefined && after === undefined) return null;
  const hops = before === undefined || after === undefined ? null : before + 1 + after;
  const failed = () => {
    if (without.has(each.id)) return 'left_out';
    if (asOf !== null && at(each.issued) > asOf) return 'not_issued';
    if (each.revoked !== null && at(each.revoked) <= (asOf ?? now))
      return each.reason === 'ended' ? 'revoked' : 'replaced';
    if (!inForce(each, question)) return 'expired';
    if (before === undefined) return 'not_reached';
    if (hops === null) return 'leads_elsewhere';
    return hops > (path?.length ?? 0) ? 'longer' : 'later';
  };
  return [[each.id, failed(), hops] as const];
}

test('without trust, exactly the candidates with hops would each establish it', () => {
  fc.assert(
    fc.property(cases, ({ given, question }) => {
      const { from, to } = question;
      const counting = given.filter((each) => inForce(each, question));
      if (plainPath(counting, from, to) !== null) return;
      const { candidates } = explained(indexOf(given), question);
      const bringing = given.filter((each) => plainPath([...counting, each], from, to) !== null);
      assert.deepEqual(
        candidates
          .filter(({ hops }) => hops !== null)
          .map(({ treaty_id }) => treaty_id)
          .sort(),
        bringing.map(({ id }) => id).sort(),
      );
    }),
    RUNS,
  );
});

const NOW: Question = { from: 'a', to: 'z', now: at(1), asOf: null, without: new Set() };
const treaty = (id: string, from: string, to: string): Given => ({
  id,
  from,
  to,
  issued: 0,
  expires: 2,
  revoked: null,
  reason: '',
});

test('candidates are listed nearest first, and the rest are counted', () => {
  const direct = { ...treaty('direct', 'a', 'z'), revoked: 1, reason: 'ended' };
  const dead = Array.from({ length: 200 }, (_, n) => treaty(`t-${1000 + n}`, 'a', `dead-${n}`));
  const { candidates, candidate_count, more_candidates } = explained(
    indexOf([...dead, treaty('far', 'y', 'z'), direct]),
    NOW,
  );
  assert.equal(candidates.length, MAX_CANDIDATES);
  assert.deepEqual([candidate_count, more_candidates], [202, 202 - MAX_CANDIDATES]);
  const [first, second] = candidates;
  assert.deepEqual(
    [first?.treaty_id, first?.failed_test, first?.hops, first?.revocation_reason],
    ['direct', 'revoked', 1, 'ended'],
  );
  assert.deepEqual([second?.to, second?.failed_test], ['dead-0', 'leads_elsewhere']);
});

test('a cut up to the limit is named, and a larger one is indeterminate', () => {
  const parallel = (count: number) =>
    Array.from({ length: count }, (_, n) => treaty(`t-${n}`, 'a', 'z'));
  const named = explained(indexOf(parallel(MAX_CUT)), NOW).cut;
  assert.deepEqual([named.state, named.size, named.treaties.length], ['found', MAX_CUT, MAX_CUT]);
  assert.deepEqual(explained(indexOf(parallel(MAX_CUT + 1)), NOW).cut, {
    state: 'indeterminate',
    size: MAX_CUT + 1,
    treaties: [],
  });
});

test('the scopes of a long path are shown up to the limit', () => {
  const path = Array.from({ length: 70 }, (_, n) =>
    treaty(`t-${n}`, n === 0 ? 'a' : `s-${n}`, n === 69 ? 'z' : `s-${n + 1}`),
  );
  const { terms } = explained(indexOf(path), NOW);
  assert.equal(terms.length, 64);
  assert.deepEqual(
    [terms[1]?.treaty_id, terms[1]?.scope?.text],
    ['t-1', '{"allowed_roles":["role:t-1"]}'],
  );
});

test('a graph that changes while it is copied is not copied', () => {
  const index = indexOf([treaty('1', 'a', 'z')]);
  const copying = copyGraph(index);
  copying.next();
  index.putTreaty('2', treatyOf(treaty('2', 'a', 'z')));
  assert.equal(copying.next().value, null);
});
