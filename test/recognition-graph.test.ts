/** The recognition graph, the Connectome and the atlas [service-read-endpoints], [core-6-2] to [core-6-4]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { get, newKey, outcome, type Received, send } from './support/requests.ts';
import {
  attest,
  importFeed,
  issued,
  parsed,
  recognize,
  revokeAttestation,
  revokeTreaty,
  sovereign,
  vectorsOf,
} from './support/trust.ts';

const GRAPH = '/recognition-graph';
const CONNECTOME = '/connectome.json';
const ATLAS = '/atlas.json';
const PATH = '/connectome/trust-path';
const DOCUMENTS = [GRAPH, CONNECTOME, ATLAS] as const;

const EMPTY_DIGEST = '63971e8c90f3b65e059883ba09745e8b4c57146e78ee4d2dbbd54a02b311c331';

test('the digest of the empty graph is that of the vectors', () => {
  assert.equal((vectorsOf('own_wire_core.json') as JsonObject).empty_graph_digest, EMPTY_DIGEST);
});

test('a new authority has an empty graph, without even itself', async () => {
  await using na = await startTestAuthority();
  assert.deepEqual((await get(na, GRAPH)).body, {
    sovereigns: [],
    recognition_edges: [],
    active_treaties: [],
    revoked_trust_material: [],
  });
  assert.deepEqual((await get(na, CONNECTOME)).body, {
    summary: {
      sovereign_count: 0,
      recognition_edge_count: 0,
      active_edge_count: 0,
      revoked_edge_count: 0,
      revoked_trust_material_count: 0,
      imported_revocation_count: 0,
    },
    sovereigns: [],
    recognition_edges: [],
    active_treaties: [],
    revoked_trust_material: [],
    revocation_blast_radius: [],
  });
  assert.deepEqual((await get(na, ATLAS)).body, {
    sovereigns: [],
    recognition_edges: [],
    active_treaty_count: 0,
    revoked_trust_material_count: 0,
    graph_digest: EMPTY_DIGEST,
  });
});

test('attestations, including revoked ones, are not part of the graph', async () => {
  await using na = await startTestAuthority();
  const { attestation_id } = await issued(attest(na));
  await revokeAttestation(na, attestation_id);
  assert.equal((await get(na, ATLAS)).body.graph_digest, EMPTY_DIGEST);
});

/** Treaties in the order in which they are issued, a second apart: issuer, subject, hours, reason for revocation. */
const TREATIES = [
  ['beta', 'alpha', 200, null],
  ['alpha', 'gamma', 1, null],
  ['alpha', 'beta', 48, null],
  ['alpha', 'beta', 200, 'ended'],
  ['alpha', 'delta', 60, 'renewed_by:t-9'],
  ['delta', 'beta', 100, null],
  ['\u{1f600}', '\ue000', 200, null],
  ['alpha', 'alpha', 200, null],
] as const;

const STATES = [
  ['active', 'active', 'low'],
  ['active', 'expired', 'expired'],
  ['active', 'expiring_soon', 'medium'],
  ['revoked', 'revoked', 'none'],
  ['revoked', 'replaced', 'none'],
  ['active', 'active', 'low'],
  ['active', 'active', 'low'],
  ['active', 'active', 'low'],
] as const;

/** Issues the treaties and advances the clock by two hours; returns their records, oldest first. */
async function populate(na: TestAuthority): Promise<JsonObject[]> {
  const made: JsonObject[] = [];
  for (const [issuer_sovereign_id, subject_sovereign_id, validity_hours, reason] of TREATIES) {
    na.clock.advance(SECOND);
    const metadata = { rate: new JsonFloat(1), Zürich: '✓' };
    const terms = { issuer_sovereign_id, subject_sovereign_id, validity_hours, metadata };
    const treaty = await issued(recognize(na, terms));
    made.push(treaty);
    if (reason !== null) await revokeTreaty(na, treaty.treaty_id, { reason });
  }
  na.clock.advance(2 * HOUR);
  return made;
}

function edgesOf(treaties: readonly JsonObject[]): JsonObject[] {
  return treaties.map((treaty, n) => {
    const [status = '', lifecycle_state = '', expiry_risk = ''] = STATES[n] ?? [];
    return {
      from: treaty.issuer_sovereign_id ?? '',
      to: treaty.subject_sovereign_id ?? '',
      treaty_id: treaty.treaty_id ?? '',
      status,
      lifecycle_state,
      expiry_risk,
      valid_from: treaty.valid_from ?? '',
      expires_at: treaty.expires_at ?? '',
    };
  });
}

const SOVEREIGNS = ['alpha', 'beta', 'delta', 'gamma', '\ue000', '\u{1f600}'].map(
  (sovereign_id) => ({
    sovereign_id,
  }),
);

test('the graph contains every treaty as an edge, oldest first, and the active ones in full', async () => {
  await using na = await startTestAuthority();
  const treaties = await populate(na);
  const graph = parsed(await get(na, GRAPH));
  assert.deepEqual(Object.keys(graph).sort(), [
    'active_treaties',
    'recognition_edges',
    'revoked_trust_material',
    'sovereigns',
  ]);
  assert.deepEqual(graph.sovereigns, SOVEREIGNS, 'distinct, ordered by code point');
  assert.deepEqual(graph.recognition_edges, edgesOf(treaties));
  assert.deepEqual(
    graph.active_treaties,
    treaties.filter((_, n) => /^(active|expiring_soon)$/.test(STATES[n]?.[1] ?? '')),
    'the full signed records, numbers to the token',
  );
  assert.deepEqual(graph.revoked_trust_material, revokedTreaties(treaties));
});

/** The rows of the treaties that were revoked as soon as they were issued. */
function revokedTreaties(treaties: readonly JsonObject[]): JsonObject[] {
  return treaties.flatMap((treaty, n) => {
    const reason = TREATIES[n]?.[3] ?? null;
    if (reason === null) return [];
    return {
      type: 'recognition_treaty',
      id: treaty.treaty_id ?? '',
      lifecycle_state: STATES[n]?.[1] ?? '',
      reason,
      revoked_at: treaty.issued_at ?? '',
    };
  });
}

test('revoked material is first the treaties, oldest first, then what feeds revoked, by issuer and id', async () => {
  await using na = await startTestAuthority();
  const treaties = await populate(na);
  const imported = await importRevocations(na);
  const graph = parsed(await get(na, GRAPH));
  assert.deepEqual(graph.revoked_trust_material, [...revokedTreaties(treaties), ...imported]);
});

/** Imports feeds of three issuers, in which ids are not sorted; returns the rows of the graph. */
async function importRevocations(na: TestAuthority): Promise<JsonObject[]> {
  const rows: JsonObject[] = [];
  for (const [name, sequence, revoked, reasons] of [
    ['gamma', 9, ['z', 'b'], { b: 'left' }],
    ['beta', 3, ['y', 'a'], { y: 'key_compromise', a: '' }],
    ['unknown', 0, ['m'], {}],
  ] as [string, number, string[], Record<string, string>][]) {
    const of = sovereign(name);
    const changes = { revoked_attestation_ids: [...revoked].sort(), revocation_reasons: reasons };
    const feed = of.feed(na.clock.now(), sequence, changes);
    const answer = await importFeed(na, feed, { issuer_public_keys: [of.key.publicKey] });
    assert.equal(outcome(answer), '200');
    for (const id of revoked) {
      rows.push({
        type: 'membership_attestation',
        id,
        issuer_sovereign_id: name,
        feed_id: feed.feed_id ?? '',
        sequence,
        reason: reasons[id] ?? null,
        revoked_at: formatInstant(na.clock.now()),
      });
    }
    na.clock.advance(SECOND);
  }
  const keyOf = ({ issuer_sovereign_id, id }: JsonObject) => `${issuer_sovereign_id} ${id}`;
  return rows.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

test('the Connectome sorts edges by from, to and treaty, and material by type and id', async () => {
  await using na = await startTestAuthority();
  const treaties = await populate(na);
  const imported = await importRevocations(na);
  const graph = parsed(await get(na, GRAPH));
  const model = parsed(await get(na, CONNECTOME));
  const byEdge = sortedBy(edgesOf(treaties), ({ from, to, treaty_id }) => [from, to, treaty_id]);
  assert.deepEqual(model.recognition_edges, byEdge);
  assert.deepEqual(model.sovereigns, SOVEREIGNS);
  assert.deepEqual(model.active_treaties, graph.active_treaties);
  const material = [...revokedTreaties(treaties), ...imported];
  assert.deepEqual(
    model.revoked_trust_material,
    sortedBy(material, ({ type, id }) => [type, id]),
  );
});

test('the Connectome counts edges by their current state', async () => {
  await using na = await startTestAuthority();
  await populate(na);
  await importRevocations(na);
  assert.deepEqual((await get(na, CONNECTOME)).body.summary, {
    sovereign_count: 6,
    recognition_edge_count: 8,
    active_edge_count: 5,
    revoked_edge_count: 2,
    revoked_trust_material_count: 7,
    imported_revocation_count: 5,
  });
  na.clock.advance(1000 * HOUR);
  const { summary } = (await get(na, CONNECTOME)).body;
  assert.deepEqual(
    [summary.active_edge_count, summary.revoked_edge_count, summary.recognition_edge_count],
    [0, 2, 8],
    'an expired edge counts in neither',
  );
});

test('the blast radius names who recognizes the issuer of each imported revocation, by active edges', async () => {
  await using na = await startTestAuthority();
  await populate(na);
  const imported = await importRevocations(na);
  const affected: Record<string, readonly string[]> = {
    beta: ['alpha', 'delta'],
    gamma: [],
    unknown: [],
  };
  assert.deepEqual(
    parsed(await get(na, CONNECTOME)).revocation_blast_radius,
    sortedBy(
      imported.map((row) => ({
        ...row,
        affected_accepting_sovereigns: affected[String(row.issuer_sovereign_id)] ?? [],
      })),
      ({ id }) => [id],
    ),
  );
});

test('an accepting sovereign is named once, however many active edges it has', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const affected = async () =>
    (await get(na, CONNECTOME)).body.revocation_blast_radius[0].affected_accepting_sovereigns;
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['a'] });
  await importFeed(na, feed, { issuer_public_keys: [beta.key.publicKey] });
  assert.deepEqual(await affected(), []);
  const ids: JsonValue[] = [];
  for (const issuer of ['gamma', 'alpha', 'gamma', 'beta']) {
    const { treaty_id = '' } = await issued(recognize(na, { issuer_sovereign_id: issuer }));
    ids.push(treaty_id);
  }
  assert.deepEqual(await affected(), ['alpha', 'beta', 'gamma']);
  await revokeTreaty(na, ids[0]);
  assert.deepEqual(await affected(), ['alpha', 'beta', 'gamma']);
  await revokeTreaty(na, ids[2]);
  assert.deepEqual(await affected(), ['alpha', 'beta']);
});

test('the atlas summarizes the graph', async () => {
  await using na = await startTestAuthority();
  await populate(na);
  await importRevocations(na);
  const graph = parsed(await get(na, GRAPH));
  const atlas = parsed(await get(na, ATLAS));
  assert.deepEqual(Object.keys(atlas).sort(), [
    'active_treaty_count',
    'graph_digest',
    'recognition_edges',
    'revoked_trust_material_count',
    'sovereigns',
  ]);
  assert.deepEqual(atlas.sovereigns, graph.sovereigns);
  assert.deepEqual(
    sortedBy(atlas.recognition_edges as JsonObject[], ({ treaty_id }) => [treaty_id]),
    sortedBy(graph.recognition_edges as JsonObject[], ({ treaty_id }) => [treaty_id]),
  );
  assert.equal(atlas.active_treaty_count, (graph.active_treaties as JsonObject[]).length);
  assert.equal(atlas.revoked_trust_material_count, 7);
});

async function digestOf(na: TestAuthority): Promise<string> {
  return (await get(na, ATLAS)).body.graph_digest;
}

/** The digest that another party computes from the answer of /recognition-graph. */
function recomputed(graph: Received): string {
  return sha256Hex(canonicalJson(parseJson(graph.text)));
}

test('the digest is that of the canonical JSON of the served graph, whatever its contents', async () => {
  await using na = await startTestAuthority();
  const seen: string[] = [];
  async function check(): Promise<void> {
    const digest = await digestOf(na);
    assert.equal(digest, recomputed(await get(na, GRAPH)));
    assert.match(digest, /^[0-9a-f]{64}$/);
    seen.push(digest);
  }
  await check();
  const metadata = parseJson(
    '{"limit":1.0,"tiny":1e-7,"big":18446744073709551616,"\\ud83d\\ude00":1,"\\ue000":2,"n":-0.0,"s":"a/b<&>\\u007f"}',
  );
  const { treaty_id } = await issued(recognize(na, { metadata }));
  await check();
  await revokeTreaty(na, treaty_id, { reason: 'Zürich \u{1f600}\u0000' });
  await check();
  await revokeTreaty(na, treaty_id, { reason: 'another' });
  await check();
  await populate(na);
  await check();
  await importRevocations(na);
  await check();
  assert.equal(new Set(seen).size, seen.length, 'every change is seen');
  await using again = await na.restart();
  assert.equal(await digestOf(again), seen.at(-1));
  assert.equal(recomputed(await get(again, GRAPH)), seen.at(-1));
});

test('the digest changes exactly when a lifecycle state or risk changes with time', async (t) => {
  await using na = await startTestAuthority();
  await recognize(na, { validity_hours: 100 });
  await recognize(na, { validity_hours: 100, subject_sovereign_id: 'gamma' });
  const expiry = na.clock.now() + 100 * HOUR;
  let digest = await digestOf(na);
  for (const [left, changes] of [
    [99 * HOUR, false],
    [72 * HOUR + SECOND, false],
    [72 * HOUR + SECOND - 1, true],
    [72 * HOUR, false],
    [24 * HOUR + SECOND, false],
    [24 * HOUR + SECOND - 1, true],
    [SECOND, false],
    [SECOND - 1, true],
    [0, false],
    [-1000 * HOUR, false],
  ] as const) {
    await t.test(`${left} ms before expiry it ${changes ? 'changes' : 'stays'}`, async () => {
      na.clock.advance(expiry - left - na.clock.now());
      const next = await digestOf(na);
      assert.equal(next !== digest, changes);
      assert.equal(next, recomputed(await get(na, GRAPH)));
      digest = next;
    });
  }
});

for (const first of DOCUMENTS) {
  test(`whichever document is requested first after a change (${first}), all three agree`, async () => {
    await using na = await startTestAuthority();
    const order = [first, ...DOCUMENTS.filter((path) => path !== first)];
    for (let n = 0; n < 3; n += 1) {
      await recognize(na, { subject_sovereign_id: `s-${n}`, validity_hours: 73 });
      await agree(n + 1);
      na.clock.advance(HOUR);
      await agree(n + 1);
    }

    async function agree(edges: number): Promise<void> {
      const answers = new Map<string, Received>();
      for (const path of order) answers.set(path, await get(na, path));
      const [graph, model, atlas] = DOCUMENTS.map((path) => answers.get(path));
      assert.equal(graph?.body.recognition_edges.length, edges);
      assert.equal(model?.body.summary.recognition_edge_count, edges);
      assert.equal(atlas?.body.graph_digest, graph && recomputed(graph));
    }
  });
}

test('readers during 20 new treaties see graphs that match some digest, and finally the last one', async () => {
  await using na = await startTestAuthority();
  const issuing = Array.from({ length: 20 }, (_, n) =>
    recognize(na, { subject_sovereign_id: `s-${n}`, subject_public_keys: [newKey().publicKey] }),
  );
  const reading = Array.from({ length: 20 }, (_, n) => get(na, DOCUMENTS[n % 3] ?? GRAPH));
  for (const answer of await Promise.all([...issuing, ...reading])) {
    assert.equal(outcome(answer), '200');
  }
  const graph = await get(na, GRAPH);
  assert.equal(graph.body.recognition_edges.length, 20);
  assert.equal(await digestOf(na), recomputed(graph));
});

for (const path of DOCUMENTS) {
  test(`GET ${path} has a strong ETag, answers 304 to clients that have it, and 200 once it changed`, async () => {
    await using na = await startTestAuthority();
    const { treaty_id } = await issued(recognize(na, { validity_hours: 73 }));
    const first = await get(na, path);
    const etag = first.headers.get('etag') ?? '';
    assert.match(etag, /^"[^"]+"$/);
    const conditional = (held: string) =>
      send(na, 'GET', path, { headers: { 'If-None-Match': held } });
    na.clock.advance(MINUTE);
    const unchanged = await conditional(etag);
    assert.deepEqual([unchanged.status, unchanged.text], [304, '']);
    assert.equal(unchanged.headers.get('etag'), etag);
    assert.equal((await conditional(`"other", ${etag}`)).status, 304);
    assert.equal((await conditional('"other"')).status, 200);
    na.clock.advance(HOUR);
    const byTime = await conditional(etag);
    assert.equal(byTime.status, 200, 'changed by time');
    assert.notEqual(byTime.text, first.text);
    const next = byTime.headers.get('etag') ?? '';
    assert.equal((await conditional(next)).status, 304);
    await revokeTreaty(na, treaty_id);
    const byHand = await conditional(next);
    assert.equal(byHand.status, 200, 'changed by a revocation');
    const head = await send(na, 'HEAD', path);
    assert.deepEqual(
      [head.status, head.text, head.headers.get('etag')],
      [200, '', byHand.headers.get('etag')],
    );
  });
}

test('trust path queries are limited per address, including those on the page of the atlas', async () => {
  const environment = { MESH_RATE_LIMIT_TRUST_PATH: '2/60' };
  await using na = await startTestAuthority({ environment });
  const ends = '?from=alpha&to=beta';
  assert.equal(outcome(await get(na, PATH + ends)), '200');
  assert.equal(outcome(await get(na, `/atlas${ends}`)), '200');
  for (const path of [PATH, '/atlas']) {
    const refused = await get(na, path + ends);
    assert.equal(outcome(refused), '429 rate_limit_exceeded');
    assert.equal(refused.headers.get('retry-after'), '60');
  }
  assert.equal(outcome(await get(na, '/atlas')), '200');
});

// The trust path as it is served [core-6-3]; test/trust-path.test.ts tests the search itself.

test('a trust path is returned with the full edges of the graph', async () => {
  await using na = await startTestAuthority();
  const [first, second] = await chain(na, ['alpha', 'beta', 'gamma']);
  const answer = await get(na, `${PATH}?from=alpha&to=gamma`);
  assert.equal(answer.status, 200);
  const { recognition_edges } = (await get(na, GRAPH)).body;
  assert.deepEqual(answer.body, {
    from: 'alpha',
    to: 'gamma',
    trusted: true,
    reason: 'active_treaty_path',
    path: recognition_edges,
    hop_count: 2,
  });
  assert.deepEqual(
    answer.body.path.map(({ treaty_id }: JsonObject) => treaty_id),
    [first, second],
  );
});

/** Issues a treaty from each name to the next, a second apart; returns their ids. */
async function chain(na: TestAuthority, names: readonly string[]): Promise<JsonValue[]> {
  const ids: JsonValue[] = [];
  for (const [index, subject_sovereign_id] of names.slice(1).entries()) {
    const terms = { issuer_sovereign_id: names[index] ?? '', subject_sovereign_id };
    ids.push((await issued(recognize(na, terms))).treaty_id ?? '');
    na.clock.advance(SECOND);
  }
  return ids;
}

test('without a path, the answer gives the reason, and shows a revoked direct treaty', async (t) => {
  await using na = await startTestAuthority();
  const [, ended] = await chain(na, ['alpha', 'beta', 'gamma']);
  const [replaced] = await chain(na, ['beta', 'delta']);
  await revokeTreaty(na, ended, { reason: 'ended' });
  await revokeTreaty(na, replaced, { reason: 'renewed_by:x' });
  await recognize(na, { subject_sovereign_id: 'short', validity_hours: 1 });
  na.clock.advance(2 * HOUR);
  const none = { trusted: false, reason: 'no_active_treaty_path', path: [], hop_count: 0 };
  for (const [from, to] of [
    ['alpha', 'gamma'],
    ['beta', 'alpha'],
    ['alpha', 'alpha'],
    ['alpha', 'nobody'],
    ['nobody', 'alpha'],
    ['nobody', 'nobody'],
    ['alpha', 'short'],
    ['__proto__', 'constructor'],
  ] as const) {
    await t.test(`${from} to ${to}: nothing`, async () => {
      const { body } = await get(na, `${PATH}?from=${from}&to=${to}`);
      assert.deepEqual(body, { from, to, ...none });
    });
  }
  const { recognition_edges } = (await get(na, GRAPH)).body;
  for (const [to, treaty_id, state] of [
    ['gamma', ended, 'revoked'],
    ['delta', replaced, 'replaced'],
  ] as const) {
    await t.test(`beta to ${to}: the ${state} treaty`, async () => {
      const { body } = await get(na, `${PATH}?from=beta&to=${to}`);
      const edge = recognition_edges.find((row: JsonObject) => row.treaty_id === treaty_id);
      assert.equal(edge.lifecycle_state, state);
      assert.deepEqual(body, {
        from: 'beta',
        to,
        trusted: false,
        reason: 'direct_treaty_revoked',
        path: [edge],
        hop_count: 0,
      });
    });
  }
});

test('a trust path follows the clock and each change', async () => {
  await using na = await startTestAuthority();
  await recognize(na, { validity_hours: 1 });
  const reasonOf = async () => (await get(na, `${PATH}?from=alpha&to=beta`)).body.reason;
  na.clock.advance(HOUR - SECOND);
  assert.equal(await reasonOf(), 'active_treaty_path');
  na.clock.advance(1);
  assert.equal(await reasonOf(), 'no_active_treaty_path');
  const { treaty_id } = await issued(recognize(na));
  assert.equal(await reasonOf(), 'active_treaty_path');
  await revokeTreaty(na, treaty_id);
  assert.equal(await reasonOf(), 'direct_treaty_revoked');
  await using again = await na.restart();
  const { body } = await get(again, `${PATH}?from=alpha&to=beta`);
  assert.deepEqual([body.reason, body.path[0].treaty_id], ['direct_treaty_revoked', treaty_id]);
});

test('source and target are aliases of from and to', async (t) => {
  await using na = await startTestAuthority();
  await chain(na, ['alpha', 'beta']);
  for (const query of [
    'from=alpha&to=beta',
    'source=alpha&target=beta',
    'from=alpha&target=beta',
    'source=alpha&to=beta',
    'from=&source=alpha&to=beta',
    'from=alpha&source=nobody&to=beta&target=nobody',
    'to=beta&from=alpha',
  ]) {
    await t.test(query, async () => {
      const { body } = await get(na, `${PATH}?${query}`);
      assert.deepEqual([body.from, body.to, body.trusted], ['alpha', 'beta', true]);
    });
  }
});

test('a trust path without from or to is 400', async (t) => {
  await using na = await startTestAuthority();
  for (const query of [
    '',
    'from=alpha',
    'to=beta',
    'source=alpha',
    'target=beta',
    'from=&to=',
    'from=alpha&to=',
    'from=&to=beta',
    'source=&target=',
    'From=alpha&To=beta',
  ]) {
    await t.test(query || 'no query', async () => {
      const answer = await get(na, `${PATH}?${query}`);
      assert.equal(outcome(answer), '400 missing_trust_path_parameters');
    });
  }
});

test('names are percent-decoded, and a plus is a space', async () => {
  await using na = await startTestAuthority();
  await chain(na, ['a b', 'Zürich/✓']);
  for (const from of ['a%20b', 'a+b']) {
    const { body } = await get(na, `${PATH}?from=${from}&to=${encodeURIComponent('Zürich/✓')}`);
    assert.deepEqual([body.from, body.to, body.trusted], ['a b', 'Zürich/✓', true]);
  }
});

function sortedBy(rows: readonly JsonObject[], key: (row: JsonObject) => readonly unknown[]) {
  return [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    for (const [index, value] of x.entries()) {
      const order = compare(String(value), String(y[index]));
      if (order !== 0) return order;
    }
    return 0;
  });
}

/** Compares by code point, which is the order of the UTF-8 bytes. */
function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
