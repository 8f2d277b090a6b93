/**
 * Why, as of when and what if, as answered by the service [core-6-3-1]; test/trust-questions.test.ts tests the search.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import Value from 'typebox/value';
import { createSliceQueue, Sliced } from '../src/authority/subjects/sliced.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { TrustAnswer } from '../src/protocol/rows/graph.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { get, outcome, type Received } from './support/requests.ts';
import { issued, parsed, recognize, revokeTreaty } from './support/trust.ts';

const PATH = '/connectome/trust-path';

/** Issues a treaty and returns its id; the clock advances by a second. */
async function treaty(
  na: TestAuthority,
  issuer_sovereign_id: string,
  subject_sovereign_id: string,
  terms: JsonObject = {},
): Promise<string> {
  const record = await issued(
    recognize(na, { issuer_sovereign_id, subject_sovereign_id, ...terms }),
  );
  na.clock.advance(SECOND);
  return String(record.treaty_id);
}

async function ask(na: TestAuthority, query: string): Promise<JsonObject> {
  const received = await get(na, `${PATH}?from=alpha&to=delta&${query}`);
  assert.equal(outcome(received), '200');
  assert.deepEqual([...Value.Errors(TrustAnswer, received.body)], []);
  return parsed(received);
}

const shared = sharedAuthority();
let only: Promise<string> | null = null;

/** An authority that knows a single treaty, and the id of that treaty. */
async function small() {
  const na = await shared();
  only ??= treaty(na, 'alpha', 'delta');
  return { na, id: await only };
}

test('an explanation says through whom, until when, on which terms and what else was considered', async () => {
  await using na = await startTestAuthority();
  const start = na.clock.now();
  const scope = { allowed_roles: ['role:client'], accepted_statuses: ['active'], claims: {} };
  const first = await treaty(na, 'alpha', 'beta', { validity_hours: 100, scope });
  const second = await treaty(na, 'beta', 'delta', { validity_hours: 50 });
  const third = await treaty(na, 'beta', 'delta', { validity_hours: 80 });
  const ended = await treaty(na, 'alpha', 'delta', { validity_hours: 100 });
  await revokeTreaty(na, ended, { reason: 'no longer needed' });
  const stray = await treaty(na, 'beta', 'omega', { validity_hours: 100 });
  const lone = await treaty(na, 'omikron', 'delta', { validity_hours: 100 });
  const unrelated = await treaty(na, 'sigma', 'tau', { validity_hours: 100 });
  const plain = parsed(await get(na, `${PATH}?from=alpha&to=delta`));
  const [sooner, later] = second < third ? [second, third] : [third, second];
  const hoursOf = (id: string) => (id === second ? 50 : 80);
  const issuedAt = (id: string) => start + (id === second ? 1 : 2) * SECOND;
  const at = (instant: number) => formatInstant(instant);
  const candidate = (id: string, [from, to]: readonly string[], rest: JsonObject) => {
    const none = { revoked_at: null, revocation_reason: null };
    return { treaty_id: id, from, to, ...none, ...rest };
  };
  const span = (from: number, hours: number) => ({
    valid_from: at(from),
    expires_at: at(from + hours * HOUR),
  });
  const { scope: everything } = parsed(await get(na, `/recognition-treaties/${sooner}`))
    .treaty as JsonObject;
  assert.deepEqual(await ask(na, 'explain=1'), {
    ...plain,
    as_of: null,
    evaluated_at: at(na.clock.now()),
    known_from: at(start),
    without: [],
    graph_digest: (await get(na, '/atlas.json')).body.graph_digest,
    explanation: {
      trusted_until: at(start + 2 * SECOND + 80 * HOUR - SECOND),
      path_until: at(issuedAt(sooner) + hoursOf(sooner) * HOUR - SECOND),
      terms: [
        { treaty_id: first, scope },
        { treaty_id: sooner, scope: everything },
      ],
      candidates: [
        candidate(ended, ['alpha', 'delta'], {
          ...{ failed_test: 'revoked', hops: 1 },
          ...span(start + 3 * SECOND, 100),
          ...{ revoked_at: at(start + 4 * SECOND), revocation_reason: 'no longer needed' },
        }),
        candidate(later, ['beta', 'delta'], {
          ...{ failed_test: 'later', hops: 2 },
          ...span(issuedAt(later), hoursOf(later)),
        }),
        candidate(stray, ['beta', 'omega'], {
          ...{ failed_test: 'leads_elsewhere', hops: null },
          ...span(start + 4 * SECOND, 100),
        }),
        candidate(lone, ['omikron', 'delta'], {
          ...{ failed_test: 'not_reached', hops: null },
          ...span(start + 5 * SECOND, 100),
        }),
      ],
      candidate_count: 4,
      more_candidates: 0,
      cut: {
        state: 'found',
        size: 1,
        treaties: [{ treaty_id: first, from: 'alpha', to: 'beta' }],
      },
    },
  });
  assert.ok(!JSON.stringify(await ask(na, 'explain=1')).includes(unrelated));
});

test('what depends on the named treaties is lost when they are left out, and when they are revoked', async () => {
  await using na = await startTestAuthority();
  await treaty(na, 'alpha', 'beta');
  await treaty(na, 'alpha', 'gamma');
  for (const name of ['beta', 'gamma']) {
    await treaty(na, name, 'delta');
    await treaty(na, name, 'delta');
  }
  const { cut } = (await ask(na, 'explain=1')).explanation as JsonObject;
  const { treaties } = cut as unknown as { treaties: { treaty_id: string }[] };
  assert.equal(treaties.length, 2);
  const [one = '', other = ''] = treaties.map(({ treaty_id }) => treaty_id);
  assert.equal((await ask(na, `without=${one}`)).trusted, true);
  const without = await ask(na, `without=${one}&without=${other}&explain=1`);
  assert.deepEqual([without.trusted, without.without], [false, [one, other]]);
  assert.deepEqual((without.explanation as JsonObject).cut, {
    state: 'none',
    size: 0,
    treaties: [],
  });
  await revokeTreaty(na, one);
  assert.equal((await ask(na, 'explain=1')).trusted, true);
  await revokeTreaty(na, other);
  assert.equal((await ask(na, 'explain=1')).trusted, false);
});

test('earlier times are answered from the instants of the records, also after a restart', async () => {
  await using na = await startTestAuthority();
  const start = na.clock.now();
  const id = await treaty(na, 'alpha', 'delta', { validity_hours: 1 });
  na.clock.advance(MINUTE);
  await revokeTreaty(na, id, { reason: 'ended' });
  const revoked = na.clock.now();
  const second = await treaty(na, 'alpha', 'delta', { validity_hours: 1 });
  na.clock.advance(2 * HOUR);
  const history = [
    [start - 1, 'indeterminate', []],
    [start, 'active_treaty_path', [id]],
    [revoked - 1, 'active_treaty_path', [id]],
    [revoked, 'active_treaty_path', [second]],
    [revoked + HOUR - SECOND, 'active_treaty_path', [second]],
    [revoked + HOUR - SECOND + 1, 'direct_treaty_revoked', [id]],
    [na.clock.now(), 'direct_treaty_revoked', [id]],
  ] as const;
  async function assertHistory(at: TestAuthority): Promise<void> {
    for (const [instant, reason, ids] of history) {
      const answer = await ask(at, `as_of=${formatInstant(instant)}`);
      const path = answer.path as unknown as { treaty_id: string; status: string }[];
      assert.deepEqual(
        [answer.reason, path.map(({ treaty_id }) => treaty_id), answer.trusted],
        [reason, ids, reason === 'active_treaty_path'],
      );
      assert.deepEqual(
        [answer.as_of, answer.evaluated_at, answer.known_from],
        [formatInstant(instant), formatInstant(instant), formatInstant(start)],
      );
    }
    const before = await ask(at, `as_of=${formatInstant(start - 1)}&explain=1`);
    assert.deepEqual([before.reason, before.explanation], ['indeterminate', null]);
    const { explanation } = await ask(at, `as_of=${formatInstant(start)}&explain=1`);
    const { trusted_until, candidates } = explanation as JsonObject;
    assert.equal(trusted_until, formatInstant(start + HOUR - SECOND));
    const [coming] = candidates as readonly JsonObject[];
    assert.deepEqual(
      [coming?.treaty_id, coming?.failed_test, coming?.revoked_at],
      [second, 'not_issued', null],
    );
  }
  await assertHistory(na);
  await using again = await na.restart();
  await assertHistory(again);
});

test('at any time nothing is known if there has never been a treaty', async () => {
  await using na = await startTestAuthority();
  const answer = await ask(na, `as_of=${formatInstant(na.clock.now())}`);
  assert.deepEqual([answer.reason, answer.known_from], ['indeterminate', null]);
});

test('a timestamp may have an offset, and is returned in UTC', async () => {
  const { na } = await small();
  const { as_of } = await ask(na, 'as_of=2020-02-29T02:30:00.25%2B02:00');
  assert.equal(as_of, '2020-02-29T00:30:00.250000Z');
});

test('invalid questions are refused', async () => {
  const { na, id } = await small();
  const future = formatInstant(na.clock.now() + 1);
  const answerTo = (query: string) => get(na, `${PATH}?from=alpha&to=delta&${query}`);
  for (const [query, expected] of [
    ['explain=yes', '400 invalid_explain'],
    ['explain=2', '400 invalid_explain'],
    [Array.from({ length: 17 }, (_, n) => `without=${n}`).join('&'), '400 invalid_without'],
    [`without=${id}&`.repeat(20), '200'],
    [`without=${id}&without=unknown`, '404 treaty_not_found'],
    ['as_of=yesterday', '400 invalid_as_of'],
    ['as_of=2026-02-30T00:00:00Z', '400 invalid_as_of'],
    ['as_of=0001-01-01T00:00:00%2B01:00', '400 invalid_as_of'],
    [`as_of=${future}`, '400 invalid_as_of'],
    [`as_of=${future}&explain=1`, '400 invalid_as_of'],
    ['as_of=0001-01-01T00:00:00Z', '200'],
    ['explain=0&without=&as_of=', '200'],
  ] as const) {
    assert.equal(outcome(await answerTo(query)), expected, query);
  }
  const { details } = (await answerTo('without=unknown')).body.error;
  assert.deepEqual(details, { treaty_id: 'unknown' });
  const missing = await get(na, `${PATH}?to=delta&explain=9`);
  assert.equal(outcome(missing), '400 missing_trust_path_parameters');
});

test('without further parameters, or with empty ones, the answer is the plain one', async () => {
  const { na } = await small();
  const plain = await get(na, `${PATH}?from=alpha&to=delta`);
  const members = ['from', 'to', 'trusted', 'reason', 'path', 'hop_count'];
  assert.deepEqual(Object.keys(plain.body), members);
  const same = await get(na, `${PATH}?from=alpha&to=delta&explain=0&without=&as_of=`);
  assert.equal(same.text, plain.text);
});

test('a sovereign without treaties, and a sovereign and itself, have an explanation too', async () => {
  const { na } = await small();
  for (const [from, to, count] of [
    ['nobody', 'nobody else', 0],
    ['alpha', 'nobody', 1],
    ['nobody', 'delta', 1],
    ['alpha', 'alpha', 0],
  ] as const) {
    const { body } = await get(na, `${PATH}?from=${from}&to=${to}&explain=1`);
    assert.deepEqual([body.trusted, body.explanation.candidate_count], [false, count]);
  }
});

test('the digest is that of the graph at the time of the answer, however it changes', async () => {
  await using na = await startTestAuthority();
  await treaty(na, 'alpha', 'delta', { validity_hours: 24 });
  const digests = new Set<string>();
  for (const change of [
    () => treaty(na, 'alpha', 'beta', { validity_hours: 73 }),
    async () => na.clock.advance(HOUR + SECOND),
    async () => na.clock.advance(24 * HOUR),
  ]) {
    await change();
    const { graph_digest } = await ask(na, 'explain=1');
    assert.equal(graph_digest, (await get(na, '/atlas.json')).body.graph_digest);
    digests.add(String(graph_digest));
  }
  assert.equal(digests.size, 3);
});

test('explanations during new treaties each show a single state of the graph', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_EXPLAIN: 'off' } });
  await treaty(na, 'alpha', 'delta');
  const known = new Map<unknown, number>();
  const issuing = Array.from({ length: 20 }, () => treaty(na, 'alpha', 'delta'));
  const asking = Array.from({ length: 40 }, () => ask(na, 'explain=1'));
  await Promise.all(issuing);
  for (const { graph_digest, explanation } of await Promise.all(asking)) {
    const { cut } = explanation as unknown as { cut: { size: number } };
    assert.equal(known.get(graph_digest) ?? cut.size, cut.size);
    known.set(graph_digest, cut.size);
  }
});

test('a source may request 60 explanations a minute, and any number of other answers', async () => {
  await using na = await startTestAuthority();
  await treaty(na, 'alpha', 'delta');
  for (let n = 0; n < 60; n += 1) await ask(na, 'explain=1');
  const refused: Received = await get(na, `${PATH}?from=alpha&to=delta&explain=1`);
  assert.equal(outcome(refused), '429 rate_limit_exceeded');
  assert.equal(refused.headers.get('retry-after'), '60');
  await ask(na, `as_of=${formatInstant(na.clock.now())}`);
  assert.equal(outcome(await get(na, `${PATH}?from=alpha&to=delta`)), '200');
  na.clock.advance(MINUTE);
  await ask(na, 'explain=1');
});

test('a client accepts no answer to another question', async (t) => {
  const plain = { trusted: true, reason: 'active_treaty_path', path: [], hop_count: 1 };
  const older = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ from: 'alpha', to: 'delta', ...plain }));
  }).listen(0, '127.0.0.1');
  await once(older, 'listening');
  t.after(() => older.close());
  const { port } = older.address() as AddressInfo;
  const client = createPublicClient({ url: `http://127.0.0.1:${port}` });
  assert.equal((await client.trustPath({ from: 'alpha', to: 'delta' })).trusted, true);
  for (const question of [{ explain: true }, { without: ['t'] }, { as_of: '2026-01-01' }]) {
    await assert.rejects(client.askTrust('alpha', 'delta', question), {
      code: 'unreadable_answer',
    });
  }
});

test('a client asks further questions', async () => {
  const { na, id } = await small();
  const client = createPublicClient({ url: na.url });
  const why = await client.askTrust('alpha', 'delta', { explain: true });
  assert.equal(why.explanation?.cut.treaties[0]?.treaty_id, id);
  const whatIf = await client.askTrust('alpha', 'delta', { without: [id] });
  assert.deepEqual([whatIf.trusted, whatIf.explanation], [false, undefined]);
  const before = formatInstant(na.clock.now() - HOUR);
  const then = await client.askTrust('alpha', 'delta', { as_of: before, explain: true });
  assert.deepEqual([then.reason, then.explanation], ['indeterminate', null]);
});

test('sliced queries run one after the other, and too many of them are refused', async () => {
  const queue = createSliceQueue();
  const order: string[] = [];
  function* work(name: string): Generator<void, string> {
    for (const slice of [1, 2]) {
      order.push(`${name}${slice}`);
      yield;
    }
    return name;
  }
  const turns = Array.from({ length: 64 }, (_, n) => queue.run(new Sliced(work(`w${n}.`))));
  assert.throws(() => queue.run(new Sliced(work('x'))), { refusal: 'rate_limit_exceeded' });
  assert.equal(await turns[63], 'w63.');
  assert.deepEqual(order.slice(0, 4), ['w0.1', 'w0.2', 'w1.1', 'w1.2']);
  function* failing(): Generator<void, string> {
    yield;
    throw new Error('broken');
  }
  await assert.rejects(queue.run(new Sliced(failing())), /broken/);
  assert.equal(await queue.run(new Sliced(work('y'))), 'y');
});
