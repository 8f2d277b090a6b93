/** The recognition graph, the Connectome and the atlas [service-read-endpoints], [core-6-2] to [core-6-4]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
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
} from './support/trust.ts';
import { readVectors } from './support/vectors.ts';

const GRAPH = '/recognition-graph';
const CONNECTOME = '/connectome.json';
const ATLAS = '/atlas.json';
const PATH = '/connectome/trust-path';
const DOCUMENTS = [GRAPH, CONNECTOME, ATLAS] as const;

const EMPTY_DIGEST = '63971e8c90f3b65e059883ba09745e8b4c57146e78ee4d2dbbd54a02b311c331';

test('a new authority has an empty graph, without even itself, and its digest is that of the vectors', async () => {
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
  assert.equal(readVectors<JsonObject>('own_wire_core.json').empty_graph_digest, EMPTY_DIGEST);
  const { attestation_id } = await issued(attest(na));
  await revokeAttestation(na, attestation_id);
  const { graph_digest } = (await get(na, ATLAS)).body;
  assert.equal(graph_digest, EMPTY_DIGEST, 'attestations are not part of it, even revoked ones');
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

/** A network with all of this, which no test changes. */
const populated = (() => {
  const shared = sharedAuthority();
  let filled: ReturnType<typeof fill> | undefined;
  async function fill() {
    const na = await shared();
    const treaties = await populate(na);
    return { na, treaties, imported: await importRevocations(na) };
  }
  return () => {
    filled ??= fill();
    return filled;
  };
})();

test('the graph contains every treaty as an edge, oldest first, and the active ones in full', async () => {
  const { na, treaties, imported } = await populated();
  assert.deepEqual(parsed(await get(na, GRAPH)), {
    // Distinct, ordered by code point.
    sovereigns: SOVEREIGNS,
    recognition_edges: edgesOf(treaties),
    // The full signed records, numbers to the token.
    active_treaties: treaties.filter((_, n) =>
      /^(active|expiring_soon)$/.test(STATES[n]?.[1] ?? ''),
    ),
    // First the treaties, oldest first, then what feeds revoked, by issuer and id.
    revoked_trust_material: [...revokedTreaties(treaties), ...imported],
  });
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

test('the Connectome sorts and counts what is in the graph, and names whom each imported revocation affects', async () => {
  const { na, treaties, imported } = await populated();
  const graph = parsed(await get(na, GRAPH));
  const byEdge = sortedBy(edgesOf(treaties), ({ from, to, treaty_id }) => [from, to, treaty_id]);
  const material = [...revokedTreaties(treaties), ...imported];
  // Those that recognize the issuer by active edges.
  const affected: Record<string, readonly string[]> = { beta: ['alpha', 'delta'] };
  assert.deepEqual(parsed(await get(na, CONNECTOME)), {
    summary: {
      sovereign_count: 6,
      recognition_edge_count: 8,
      active_edge_count: 5,
      revoked_edge_count: 2,
      revoked_trust_material_count: 7,
      imported_revocation_count: 5,
    },
    sovereigns: SOVEREIGNS,
    recognition_edges: byEdge,
    active_treaties: graph.active_treaties,
    revoked_trust_material: sortedBy(material, ({ type, id }) => [type, id]),
    revocation_blast_radius: sortedBy(
      imported.map((row) => ({
        ...row,
        affected_accepting_sovereigns: affected[String(row.issuer_sovereign_id)] ?? [],
      })),
      ({ id }) => [id],
    ),
  });
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
  const { na } = await populated();
  const graph = parsed(await get(na, GRAPH));
  const { recognition_edges, ...atlas } = parsed(await get(na, ATLAS)) as Record<string, JsonValue>;
  assert.deepEqual(
    sortedBy(recognition_edges as JsonObject[], ({ treaty_id }) => [treaty_id]),
    sortedBy(graph.recognition_edges as JsonObject[], ({ treaty_id }) => [treaty_id]),
  );
  assert.deepEqual(atlas, {
    sovereigns: graph.sovereigns,
    active_treaty_count: (graph.active_treaties as JsonObject[]).length,
    revoked_trust_material_count: 7,
    graph_digest: recomputed(await get(na, GRAPH)),
  });
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
  na.clock.advance(1000 * HOUR);
  await check();
  const { summary } = (await get(na, CONNECTOME)).body;
  assert.deepEqual(
    [summary.active_edge_count, summary.revoked_edge_count, summary.recognition_edge_count],
    [0, 3, 9],
    'an expired edge counts in neither',
  );
  assert.equal(new Set(seen).size, seen.length, 'every change is seen');
  await using again = await na.restart();
  assert.equal(await digestOf(again), seen.at(-1));
  assert.equal(recomputed(await get(again, GRAPH)), seen.at(-1));
});

test('the digest changes exactly when a lifecycle state or risk changes with time', async () => {
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
    na.clock.advance(expiry - left - na.clock.now());
    const next = await digestOf(na);
    assert.equal(next !== digest, changes, `${left} ms before expiry`);
    assert.equal(next, recomputed(await get(na, GRAPH)));
    digest = next;
  }
});

test('whichever document is requested first after a change, all three agree', async () => {
  await using na = await startTestAuthority();
  const agree = async (first: string, edges: number) => {
    const answers = new Map<string, Received>();
    const order = [first, ...DOCUMENTS.filter((path) => path !== first)];
    for (const path of order) answers.set(path, await get(na, path));
    const [graph, model, atlas] = DOCUMENTS.map((path) => answers.get(path));
    assert.equal(graph?.body.recognition_edges.length, edges, first);
    assert.equal(model?.body.summary.recognition_edge_count, edges, first);
    assert.equal(atlas?.body.graph_digest, graph && recomputed(graph), first);
  };
  for (const [index, first] of [...DOCUMENTS, ...DOCUMENTS].entries()) {
    await recognize(na, { subject_sovereign_id: `s-${index}`, validity_hours: 73 });
    await agree(first, index + 1);
    na.clock.advance(HOUR);
    await agree(first, index + 1);
  }
});

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

test('each document has a strong ETag, answers 304 to clients that have it, and 200 once it changed', async () => {
  await using na = await startTestAuthority();
  const { treaty_id } = await issued(recognize(na, { validity_hours: 73 }));
  const changes: readonly (() => unknown)[] = [
    () => na.clock.advance(HOUR + MINUTE),
    () => revokeTreaty(na, treaty_id),
  ];
  let held = await Promise.all(DOCUMENTS.map((path) => get(na, path)));
  for (const change of changes) {
    for (const [index, path] of DOCUMENTS.entries()) {
      const etag = held[index]?.headers.get('etag') ?? '';
      assert.match(etag, /^"[^"]+"$/);
      const conditional = (tags: string) =>
        send(na, 'GET', path, { headers: { 'If-None-Match': tags } });
      const unchanged = await conditional(etag);
      assert.deepEqual([unchanged.status, unchanged.text], [304, ''], path);
      assert.equal(unchanged.headers.get('etag'), etag);
      assert.equal((await conditional(`"other", ${etag}`)).status, 304);
      assert.equal((await conditional('"other"')).status, 200);
    }
    await change();
    const tags = held.map(({ headers }) => headers.get('etag') ?? '');
    held = await Promise.all(
      DOCUMENTS.map((path, index) =>
        send(na, 'GET', path, { headers: { 'If-None-Match': tags[index] ?? '' } }),
      ),
    );
    for (const { status, headers } of held) {
      assert.equal(status, 200);
      assert.ok(!tags.includes(headers.get('etag') ?? ''));
    }
  }
  for (const [index, path] of DOCUMENTS.entries()) {
    const head = await send(na, 'HEAD', path);
    assert.deepEqual(
      [head.status, head.text, head.headers.get('etag')],
      [200, '', held[index]?.headers.get('etag')],
    );
  }
});

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

test('without a path, the answer gives the reason, and shows a revoked direct treaty', async () => {
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
    const { body } = await get(na, `${PATH}?from=${from}&to=${to}`);
    assert.deepEqual(body, { from, to, ...none });
  }
  const { recognition_edges } = (await get(na, GRAPH)).body;
  for (const [to, treaty_id, state] of [
    ['gamma', ended, 'revoked'],
    ['delta', replaced, 'replaced'],
  ] as const) {
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

test('source and target are aliases of from and to, and names are percent-decoded', async () => {
  await using na = await startTestAuthority();
  await chain(na, ['alpha', 'beta']);
  await chain(na, ['a b', 'Zürich/✓']);
  const zurich = encodeURIComponent('Zürich/✓');
  for (const [query, from, to] of [
    ['from=alpha&to=beta', 'alpha', 'beta'],
    ['source=alpha&target=beta', 'alpha', 'beta'],
    ['from=alpha&target=beta', 'alpha', 'beta'],
    ['source=alpha&to=beta', 'alpha', 'beta'],
    ['from=&source=alpha&to=beta', 'alpha', 'beta'],
    ['from=alpha&source=nobody&to=beta&target=nobody', 'alpha', 'beta'],
    ['to=beta&from=alpha', 'alpha', 'beta'],
    [`from=a%20b&to=${zurich}`, 'a b', 'Zürich/✓'],
    [`from=a+b&to=${zurich}`, 'a b', 'Zürich/✓'],
  ] as const) {
    const { body } = await get(na, `${PATH}?${query}`);
    assert.deepEqual([body.from, body.to, body.trusted], [from, to, true], query);
  }
  for (const query of [
    ...['', 'from=alpha', 'to=beta', 'source=alpha', 'target=beta', 'from=&to='],
    ...['from=alpha&to=', 'from=&to=beta', 'source=&target=', 'From=alpha&To=beta'],
  ]) {
    const answer = await get(na, `${PATH}?${query}`);
    assert.equal(outcome(answer), '400 missing_trust_path_parameters', query);
  }
  const twice = await get(na, `${PATH}?source=alpha&source=gamma&to=beta`);
  assert.deepEqual(
    [outcome(twice), twice.body.error.details],
    ['400 repeated_parameter', { parameter: 'source' }],
  );
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
