/** How the recognition graph judges a sovereign: alone, and inside offers and counters [trust-4-1]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluateTrust } from '../src/authority/recognition/agreements.ts';
import { createRecognitionIndex } from '../src/authority/recognition/recognition-index.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TrustDecision } from '../src/protocol/records/trust-evidence.ts';
import { ACCEPT, OFFER, offerRequest } from './support/agreements.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { operate, outcome } from './support/requests.ts';
import {
  importFeed,
  noteImport,
  revokeTreaty,
  sovereign,
  startUnlimited,
} from './support/trust.ts';
import {
  created,
  inner,
  offerBetween,
  ourselves,
  outcomeWithCause,
  type Party,
  recognized,
} from './support/trust-protocol.ts';

const NOW = Date.UTC(2026, 2, 1, 10);

const LONG = 100 * HOUR;
const SOON = 72 * HOUR;

/** Milliseconds that are left, by name; a treaty with any other name was revoked for that reason. */
const LEFT: { readonly [name: string]: number } = {
  long: LONG,
  over: -1,
  'almost-a-second': 999,
  second: SECOND,
  hour: HOUR,
  day: 24 * HOUR,
  '72h': SOON,
  'almost-72h-and-a-second': SOON + SECOND - 1,
  '72h-and-a-second': SOON + SECOND,
};

/**
 * The judgment in a graph of words: `a>b` is a treaty from a to b that lasts long, `a>b~hour` one with an hour left,
 * `a>b~ended` one that was revoked, and `b/1` an attestation that was revoked by an imported feed of b.
 */
function judge(graph: string, source = 'a', target = 'b'): TrustDecision {
  const index = createRecognitionIndex();
  for (const [position, word] of graph.split(' ').entries()) {
    const [, issuer = '', kind, rest = ''] = /^(.)([>/])(.+)$/.exec(word) ?? [];
    if (kind === '/') {
      const about = { issuer, feedId: 'f', sequence: '1', revokedAt: NOW - 1 };
      noteImport(index, about, [[rest, null]]);
    }
    if (kind !== '>') continue;
    const [subject = '', ...ends] = rest.split('~');
    const [reason = null] = ends.filter((end) => LEFT[end] === undefined);
    const left = ends.map((end) => LEFT[end]).find((known) => known !== undefined) ?? LONG;
    index.putTreaty(`t-${position}`, {
      json: '{}',
      issuer,
      subject,
      subjectKeys: [],
      issuedAt: NOW - HOUR,
      validFrom: formatInstant(NOW - HOUR),
      expiresAt: NOW + left,
      revokedAt: reason === null ? null : NOW - 1,
      revocationReason: reason,
      followed: [],
    });
  }
  index.endLoading();
  return evaluateTrust(index, source, target, NOW);
}

/** The severity and code of each signal, in order. */
function signalsOf({ signals }: { readonly signals: readonly JsonObject[] }): string[] {
  for (const { detail } of signals) assert.ok(typeof detail === 'string' && detail !== '');
  return signals.map(({ code, severity }) => `${severity} ${code}`);
}

const BLOCKED = 'block no_active_treaty_path';
const REVOKED = 'block direct_treaty_revoked';
const ALLOWED = 'info active_treaty_path';
const PRESSURE = 'escalate recognition_under_revocation_pressure';
const EXPIRING = 'warn treaty_expiring_soon';

test('a judgment names both sides, the time and nothing about roles', () => {
  const common = {
    source_sovereign_id: 'a',
    target_sovereign_id: 'b',
    requested_roles: [],
    evaluated_at: '2026-03-01T10:00:00Z',
  };
  for (const [graph, found] of [
    ['a>b', { verdict: 'allow', reason: 'active_treaty_path', trusted: true, hop_count: 1 }],
    ['', { verdict: 'block', reason: 'no_active_treaty_path', trusted: false, hop_count: 0 }],
  ] as const) {
    const { signals: _, ...decision } = judge(graph);
    assert.deepEqual(decision, { ...common, ...found });
  }
});

const JUDGED: readonly (readonly [name: string, graph: string, hops: number, ...string[]])[] = [
  // No active path
  ['an empty graph', '', 0, BLOCKED],
  ['a treaty the other way', 'b>a', 0, BLOCKED],
  ['a path that ends before', 'a>c d>b', 0, BLOCKED],
  ['an expired treaty', 'a>b~over', 0, BLOCKED],
  ['a treaty without a whole second left', 'a>b~almost-a-second', 0, BLOCKED],
  ['a revoked treaty', 'a>b~ended', 0, REVOKED],
  ['a revoked treaty that has expired', 'a>b~over~ended', 0, REVOKED],
  ['a replaced treaty without its successor', 'a>b~replaced_by:x', 0, REVOKED],
  ['a revoked treaty and an expired one', 'a>b~over a>b~ended', 0, REVOKED],
  ['a revoked treaty on the way', 'a>c c>b~ended', 0, BLOCKED],
  ['a revoked treaty the other way', 'b>a~ended', 0, BLOCKED],
  ['no path, with revocations by both sides', 'b>a a/1 b/1', 0, BLOCKED],
  // A path without findings
  ['a treaty', 'a>b', 1, ALLOWED],
  ['two treaties', 'a>b a>b', 1, ALLOWED],
  ['a path of two', 'a>c c>b', 2, ALLOWED],
  ['a path of four', 'a>c c>d d>e e>b', 4, ALLOWED],
  ['a replaced treaty and its successor', 'a>b~replaced_by:t-1 a>b', 1, ALLOWED],
  ['a revoked treaty and a way round', 'a>b~ended a>c c>b', 2, ALLOWED],
  ['a treaty with 72 hours and a second left', 'a>b~72h-and-a-second', 1, ALLOWED],
  ['a revocation by a stranger', 'a>b c/1', 1, ALLOWED],
  ['a revocation on a longer way', 'a>b a>c c>b c/1', 1, ALLOWED],
  ['an expiring treaty on a longer way', 'a>b a>c~hour c>b', 1, ALLOWED],
  // One finding
  [
    'a treaty with less than 72 hours and a second left',
    'a>b~almost-72h-and-a-second',
    1,
    EXPIRING,
  ],
  ['a treaty with 72 hours left', 'a>b~72h', 1, EXPIRING],
  ['a treaty with a second left', 'a>b~second', 1, EXPIRING],
  ['a path with one expiring treaty', 'a>c c>b~hour', 2, EXPIRING],
  ['a revocation by the target', 'a>b b/1', 1, PRESSURE],
  ['a revocation by the source', 'a>b a/1', 1, PRESSURE],
  ['a revocation in between', 'a>c c>b c/1', 2, PRESSURE],
  // Several findings: the most severe decides, and all are reported
  ['two expiring treaties', 'a>c~hour c>b~day', 2, EXPIRING, EXPIRING],
  ['three revocations', 'a>c c>b b/1 b/2 c/1', 2, PRESSURE, PRESSURE, PRESSURE],
  ['a revocation and an expiring treaty', 'a>b~hour b/1', 1, PRESSURE, EXPIRING],
  [
    ...(['everything at once', 'a>c~hour c>b~hour a/1 b/1 c/1 d/1', 2] as const),
    ...[PRESSURE, PRESSURE, PRESSURE, EXPIRING, EXPIRING],
  ],
];

for (const [name, graph, hops, ...signals] of JUDGED) {
  const [severity = '', reason] = (signals[0] ?? '').split(' ');
  const verdict = severity === 'info' ? 'allow' : severity;

  test(`${name}: ${verdict}, ${reason}`, () => {
    const decision = judge(graph);
    assert.deepEqual(
      [decision.verdict, decision.reason, decision.trusted, decision.hop_count],
      [verdict, reason, verdict !== 'block', hops],
    );
    assert.deepEqual(signalsOf(decision), signals);
  });
}

test('no one is judged by itself, whatever treaties say', () => {
  for (const graph of ['a/1', 'a>a a/1', 'a>b b>a a/1']) {
    const decision = judge(graph, 'a', 'a');
    assert.deepEqual([decision.verdict, decision.reason], ['block', 'no_active_treaty_path']);
    assert.deepEqual(signalsOf(decision), [BLOCKED]);
  }
});

test('signals say which treaty and which attestation they are about', () => {
  const { signals } = judge('a>b~hour b/attestation-9');
  assert.match(signals[0]?.detail ?? '', /attestation-9/);
  assert.match(signals[1]?.detail ?? '', /t-0/);
});

test('signals of a great many revocations are limited, and the rest is still reported', () => {
  const revocations = Array.from({ length: 1000 }, (_, n) => `b/r-${n}`);
  const decision = judge(['a>b~hour', ...revocations].join(' '));
  assert.deepEqual([decision.verdict, decision.signals.length], ['escalate', 257]);
  assert.equal(signalsOf(decision).at(-1), EXPIRING);
});

// Through the server

/** Our evidence about `target`, from an offer to it. */
async function evidenceAbout(na: TestAuthority, target: string): Promise<JsonObject> {
  return inner(await offerTo(na, target), 'offerer_evidence');
}

/** An offer to `target` for an hour. */
function offerTo(na: TestAuthority, target: string): Promise<JsonObject> {
  const now = na.clock.now();
  const terms = { responder_sovereign_id: target, expires_at: formatInstant(now + HOUR) };
  return created(operate(na, OFFER, offerRequest(now, terms)));
}

function summaryOf(record: JsonObject): readonly unknown[] {
  const { verdict, reason, trusted, hop_count } = record;
  return [
    verdict,
    reason,
    trusted,
    hop_count,
    ...signalsOf(record as { signals: JsonObject[] } & JsonObject),
  ];
}

/** Stores a treaty between two other sovereigns in the authority. */
function recognizedBy(na: TestAuthority, issuer: string, subject: Party): Promise<JsonObject> {
  return recognized(na, subject, { issuer_sovereign_id: issuer });
}

test('an offer contains the judgment of this moment', async () => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const look = async (target: string) => summaryOf(await evidenceAbout(na, target));
  const blocked = ['block', 'no_active_treaty_path', false, 0, BLOCKED];

  assert.deepEqual(await look('beta'), blocked);
  const { treaty_id } = await recognized(na, beta, { validity_hours: 100 });
  assert.deepEqual(await look('beta'), ['allow', 'active_treaty_path', true, 1, ALLOWED]);

  assert.deepEqual(await look('gamma'), blocked);
  await recognizedBy(na, 'beta', gamma);
  assert.deepEqual(await look('gamma'), ['allow', 'active_treaty_path', true, 2, ALLOWED]);

  na.clock.advance(28 * HOUR);
  assert.deepEqual(await look('beta'), ['warn', 'treaty_expiring_soon', true, 1, EXPIRING]);
  assert.deepEqual(await look('gamma'), ['warn', 'treaty_expiring_soon', true, 2, EXPIRING]);

  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['x', 'y'] });
  assert.equal((await importFeed(na, feed)).status, 200);
  const pressed = ['escalate', 'recognition_under_revocation_pressure', true];
  assert.deepEqual(await look('beta'), [...pressed, 1, PRESSURE, PRESSURE, EXPIRING]);
  assert.deepEqual(await look('gamma'), [...pressed, 2, PRESSURE, PRESSURE, EXPIRING]);

  assert.equal((await revokeTreaty(na, treaty_id)).status, 200);
  const revoked = ['block', 'direct_treaty_revoked', false, 0, 'block direct_treaty_revoked'];
  assert.deepEqual(await look('beta'), revoked);
  assert.deepEqual(await look('gamma'), blocked);
});

test('an expiring treaty ends in a block, at the second', async () => {
  await using na = await startUnlimited();
  await recognized(na, sovereign('beta'), { validity_hours: 1 });
  na.clock.advance(HOUR - SECOND);
  assert.equal((await evidenceAbout(na, 'beta')).verdict, 'warn');
  na.clock.advance(1);
  assert.equal((await evidenceAbout(na, 'beta')).reason, 'no_active_treaty_path');
});

test('only a block prevents an offer from being accepted', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const { treaty_id } = await recognized(na, beta);
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['x'] });
  assert.equal((await importFeed(na, feed)).status, 200);
  const escalated = await offerTo(na, 'beta');
  assert.equal(inner(escalated, 'offerer_evidence').verdict, 'escalate');
  await created(operate(na, ACCEPT, { offer: escalated }));
  await revokeTreaty(na, treaty_id);
  const blocked = await offerTo(na, 'beta');
  const refused = await operate(na, ACCEPT, { offer: blocked });
  assert.equal(outcomeWithCause(refused), '422 accept_rejected offerer_evidence_blocks');
  const late = await operate(na, ACCEPT, { offer: escalated });
  assert.equal(outcome(late), '201', 'the evidence inside an offer is of its time');
});

test('evidence for the other side is judged from there, and signed in our name', async () => {
  await using na = await startUnlimited();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  const { treaty_id } = await recognizedBy(na, 'beta', alpha);
  const offer = offerBetween(alpha, beta, na.clock.now());
  const accept = async () => {
    const agreement = await created(operate(na, ACCEPT, { offer }));
    return inner(agreement, 'responder_evidence');
  };
  const known = await accept();
  assert.deepEqual(
    [known.issuer_sovereign_id, known.source_sovereign_id, known.target_sovereign_id],
    ['alpha', 'beta', 'alpha'],
  );
  assert.deepEqual(summaryOf(known), ['allow', 'active_treaty_path', true, 1, ALLOWED]);
  await revokeTreaty(na, treaty_id);
  const revoked = ['block', 'direct_treaty_revoked', false, 0, 'block direct_treaty_revoked'];
  assert.deepEqual(summaryOf(await accept()), revoked);
});

test('evidence about a sovereign of many revocations, with ids of any length, can be sent and used', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  await recognized(na, beta);
  const long = '🚀'.repeat(500);
  const revoked_attestation_ids = Array.from(
    { length: 600 },
    (_, n) => `attestation-${1000 + n}-${long}`,
  );
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids });
  assert.equal((await importFeed(na, feed)).status, 200);
  const evidence = await evidenceAbout(na, 'beta');
  assert.equal(evidence.verdict, 'escalate');
  assert.equal((evidence.signals as unknown[]).length, 256);
  const offer = await offerTo(na, 'beta');
  await created(operate(na, ACCEPT, { offer }));
});
