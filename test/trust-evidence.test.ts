/**
 * Trust evidence: build, verify [trust-2-1], [trust-2-2], [trust-3-2], [trust-5-5], [trust-6-3]. `trust-commands.test.ts`
 * has what all commands share.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyEvidence } from '../src/protocol/api/verifications.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { valuesExcept } from './support/hostile.ts';
import { get, newKey, operate, send } from './support/requests.ts';
import { inEach } from './support/tables.ts';
import {
  importFeed,
  post,
  revokeTreaty,
  sovereign,
  startUnlimited,
  verifies,
} from './support/trust.ts';
import { recordOf } from './support/trust-commands.ts';
import {
  created,
  evidence,
  MISSING,
  recognized,
  resigned,
  signaturesOf,
  without,
} from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, us, verdictOf } from './support/verifications.ts';

const shared = sharedAuthority();

const BUILD = '/admin/trust-evidence';
const VERIFY = '/trust-evidence/verify';

const DECISION = {
  source_sovereign_id: 'alpha',
  target_sovereign_id: 'beta',
  verdict: 'allow',
};

function build(decision: JsonObject, others: JsonObject = {}): JsonObject {
  return recordOf('buildEvidence', { decision, ...others });
}

async function servedGraphDigest(na: TestAuthority): Promise<string> {
  const { text } = await get(na, '/recognition-graph');
  return createHash('sha256').update(text).digest('hex');
}

// Evidence from a decision

test('only the two parties and the verdict of a decision are required, whatever the graph says', async () => {
  for (const verdict of ['allow', 'warn', 'block', 'escalate']) {
    const least = { source_sovereign_id: 'gamma', target_sovereign_id: 'gamma', verdict };
    const record = build(least);
    const { evidence_id, signatures, graph_digest, ...rest } = record;
    assert.deepEqual(rest, {
      issuer_sovereign_id: 'alpha',
      ...least,
      reason: '',
      requested_roles: [],
      trusted: false,
      hop_count: 0,
      signals: [],
      evaluated_at: '',
      issued_at: formatInstant(NOW),
      issued_by: us.key.publicKey,
      metadata: {},
    });
    assert.deepEqual(await verdictOf(verifyEvidence, { evidence: record }), {
      accepted: true,
      reason: 'accepted',
      evidence_id: evidence_id ?? null,
      issuer_sovereign_id: 'alpha',
      verdict,
    });
  }
});

test('members that a decision or a signal does not have are dropped, and text may be any text', () => {
  const claims = {
    evidence_id: 'chosen',
    issuer_sovereign_id: 'beta',
    issued_by: 'chosen',
    issued_at: '2020-01-01T00:00:00Z',
    metadata: { chosen: true },
    signatures: [{ key_id: 'k', sig: 's' }],
    trust_path: [{ from: 'alpha', to: 'beta', status: 'active', treaty_id: 't-1' }],
  };
  const stated = {
    source_sovereign_id: '\u{1f680}',
    target_sovereign_id: 'beta',
    verdict: 'allow',
    reason: '\u007f\u2028',
    requested_roles: ['role:client', 'role:client'],
    evaluated_at: 'yesterday',
  };
  const counted = { hop_count: new JsonFloat(3) };
  const signals = [{ code: '', severity: 'unheard of', extra: 5 }];
  const record = build({ ...claims, ...stated, ...counted, signals }, claims);
  const { evidence_id, signatures, graph_digest, ...rest } = record;
  assert.notEqual(evidence_id, 'chosen');
  assert.deepEqual(rest, {
    ...stated,
    issuer_sovereign_id: 'alpha',
    trusted: false,
    hop_count: 3,
    signals: [{ code: '', severity: 'unheard of', detail: '' }],
    issued_at: formatInstant(NOW),
    issued_by: us.key.publicKey,
    metadata: {},
  });
  assert.ok(verifies(record, us.key.publicKey));
});

// The graph that it is based on

test('the graph digest is the given one, or else that of our graph', () => {
  for (const graph_digest of ['AB'.repeat(32), 'sha256:whatever ']) {
    assert.equal(build(DECISION, { graph_digest }).graph_digest, graph_digest);
  }
  const { graph_digest: own } = build(DECISION);
  for (const [, graph_digest] of MISSING) {
    assert.equal(build(DECISION, { graph_digest }).graph_digest, own);
  }
});

test('the graph digest follows the graph: treaties come, end and expire, feeds arrive', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const seen: string[] = [];
  const look = async () => {
    const { graph_digest } = await created(operate(na, BUILD, { decision: DECISION }));
    assert.equal(graph_digest, await servedGraphDigest(na));
    assert.equal(graph_digest, (await get(na, '/atlas.json')).body.graph_digest);
    const again = await created(operate(na, BUILD, { decision: DECISION }));
    assert.equal(again.graph_digest, graph_digest, 'building evidence does not change it');
    seen.push(String(graph_digest));
  };
  await look();
  const { treaty_id } = await recognized(na, beta, { validity_hours: 96 });
  await look();
  await recognized(na, sovereign('gamma'), { validity_hours: 1 });
  await look();
  na.clock.advance(HOUR);
  await look();
  na.clock.advance(24 * HOUR);
  await look();
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['a-1'] });
  assert.equal((await importFeed(na, feed)).status, 200);
  await look();
  assert.equal((await revokeTreaty(na, treaty_id)).status, 200);
  await look();
  assert.equal(seen[0], '63971e8c90f3b65e059883ba09745e8b4c57146e78ee4d2dbbd54a02b311c331');
  assert.equal(new Set(seen).size, seen.length);
});

// Verification [trust-6-3]; `verifications.test.ts` has what all verifications share.

test('verifying evidence reports the first reason', async () => {
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const genuine = evidence(beta, gamma, NOW);
  const digest = String(genuine.graph_digest);
  const made = (changes: JsonObject) => evidence(beta, gamma, NOW, changes);
  const altered = (changes: JsonObject) => ({ ...genuine, ...changes });
  const byStranger = resigned(genuine, newKey());
  const [signature] = signaturesOf(byStranger);
  const others = (count: number) => [...Array(count).fill(signature), ...signaturesOf(genuine)];
  const expecting = (record: JsonObject, expected_graph_digest: JsonValue) => ({
    evidence: record,
    expected_graph_digest,
  });
  const unsigned = altered({ signatures: [] });
  const mislabeled = signaturesOf(genuine).map(({ sig }) => ({ key_id: '', sig }));
  const laterSpelling = String(genuine.issued_at).replace('Z', '+00:00');
  await checkVerdicts(
    verifyEvidence,
    {
      accepted: {
        ...eachAs('evidence', {
          genuine,
          'of a block': made({ verdict: 'block', trusted: false }),
          'with a verdict of its own': made({ verdict: 'perhaps' }),
          'of long ago': evidence(beta, gamma, 0),
          'in the name of another': made({ issuer_sovereign_id: 'gamma' }),
          'with signals of other members': made({ signals: [{ any: 'text', more: '' }, {}] }),
          'labeled wrong': altered({ signatures: mislabeled }),
          'whose sixteenth signature is right': altered({ signatures: others(15) }),
          'with members nobody knows': altered({ trust_path: [], status: 'revoked' }),
          'whose hop count is an integral float': altered({ hop_count: new JsonFloat(1) }),
          'whose time is spelt with +00:00': altered({ issued_at: laterSpelling }),
        }),
        'with a prefixed digest': expecting(made({ graph_digest: 'sha256:ab' }), 'sha256:ab'),
        'that never expects a digest': expecting(genuine, null),
        'of the expected digest': expecting(genuine, digest),
        'of no digest, as expected': expecting(made({ graph_digest: '' }), ''),
      },
      graph_digest_mismatch: {
        'of the expected digest in capitals': expecting(genuine, digest.toUpperCase()),
        'of another digest': expecting(genuine, 'cd'.repeat(32)),
        'of no digest': expecting(genuine, ''),
      },
      missing_signature: {
        unsigned: { evidence: unsigned },
        'unsigned, the member left out': { evidence: without(genuine, 'signatures') },
        'unsigned and of another digest': expecting(unsigned, ''),
      },
      invalid_signature: {
        ...eachAs('evidence', {
          'of a stranger': byStranger,
          'turned from a block': { ...made({ verdict: 'block' }), verdict: 'allow' },
          'whose evaluation time is respelt': altered({ evaluated_at: '2026-01-15T12:00:00Z' }),
          'whose metadata has 1 for 1.0': altered({ metadata: { weight: 1, kept: ['\u00e9'] } }),
          'without its id, which each reader makes up': without(genuine, 'evidence_id'),
          'without its time, which each reader makes up': without(genuine, 'issued_at'),
        }),
        'of a stranger and of another digest': expecting(byStranger, ''),
      },
      '400 invalid_evidence invalid_expected_graph_digest': inEach(
        'expected_graph_digest',
        valuesExcept('null', 'a string', 'an empty string'),
      ),
      '400 invalid_evidence invalid_evidence': eachAs('evidence', {
        ...Object.fromEntries(
          REQUIRED.map((member) => [`without ${member}`, without(genuine, member)]),
        ),
        'a signal with a number': altered({ signals: [{ code: 5 }] }),
        'a signal with null': altered({ signals: [{ code: 'c', detail: null }] }),
        'a signal with a list': altered({ signals: [{ code: ['c'] }] }),
        'a signal that is a float': altered({ signals: [new JsonFloat(1)] }),
        'metadata that is a float': altered({ metadata: new JsonFloat(1) }),
        'metadata that is null': altered({ metadata: null }),
        'a time without offset': altered({ issued_at: '2026-01-01T00:00:00' }),
        'a negative hop count': altered({ hop_count: -1 }),
        '17 signatures': altered({ signatures: Array(17).fill(signature) }),
      }),
    },
    { evidence: genuine, issuer_public_keys: [beta.key.publicKey] },
  );
});

const REQUIRED = [
  ...['issuer_sovereign_id', 'source_sovereign_id', 'target_sovereign_id', 'verdict', 'reason'],
  ...['trusted', 'hop_count', 'graph_digest', 'evaluated_at', 'issued_by'],
];

test('evidence passed on by others still verifies', async () => {
  const na = await shared();
  const record = await created(operate(na, BUILD, { decision: DECISION }));
  const reordered = Object.fromEntries(Object.entries(record).reverse());
  assert.equal((await post(na, VERIFY, { evidence: reordered })).body.accepted, true);
  const escaped = canonicalJson(record).replaceAll('o', '\\u006f').replaceAll(',', ' ,\n');
  const answer = await send(na, 'POST', VERIFY, { body: `{"evidence":${escaped}}` });
  assert.equal(answer.body.accepted, true);
});
