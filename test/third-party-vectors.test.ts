/** Records of other implementations: trust evidence, disclosure, consensus and data usage [trust-11]. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import {
  buildNullifier,
  CapabilityNullifier,
  proveMembership,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
} from '../src/protocol/records/capability-disclosure.ts';
import { readConsensusProof } from '../src/protocol/records/consensus-proof.ts';
import { readDataAccessIntent, readDataLicensePolicy } from '../src/protocol/records/data-usage.ts';
import type { Issuer } from '../src/protocol/records/issuer.ts';
import { recordReader } from '../src/protocol/records/record.ts';
import { isSinglySignedByAny } from '../src/protocol/records/signed-record.ts';
import {
  buildTrustEvidence,
  readTrustDecision,
  readTrustEvidence,
} from '../src/protocol/records/trust-evidence.ts';
import { testClock } from './support/clock.ts';
import { goldenKey } from './support/golden-trust.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { parsed, post, startUnlimited } from './support/trust.ts';
import { readVectors } from './support/vectors.ts';

/** When the records were created; some of them expire soon afterward. */
const NOW = Date.UTC(2026, 0, 1);

interface Vector {
  readonly title: string;
  readonly input: JsonObject;
  readonly expected: JsonObject;
}

/** The vectors of a file, which must have exactly these ids. */
function vectorsNamed(file: string, ...ids: readonly string[]): Vector[] {
  const vectors = readVectors<JsonObject[]>(file);
  assert.deepEqual(
    vectors.map(({ id }) => id),
    ids,
  );
  return vectors.map(({ id, description, input, expected }) => ({
    title: `${id}: ${description}`,
    input: input as JsonObject,
    expected: expected as JsonObject,
  }));
}

/** The record, which must already be in the spelling that was signed. */
function readAs<T extends JsonObject>(
  read: (received: unknown) => T | null,
  { input }: Vector,
  member: string,
): T {
  const record = read(input[member]);
  assert.ok(record !== null, member);
  assert.equal(canonicalJson(record), canonicalJson(input[member] ?? null), member);
  return record;
}

/** An issuer of the vectors, which uses these ids next. */
function issuerOf(sovereignId: string, signer: Signer, ...ids: unknown[]): Issuer {
  const uuid = () => String(ids.shift());
  return { sovereignId, keyId: signer.publicKey, signer, sha256: SHA256, now: NOW, uuid };
}

const na = await startUnlimited({ clock: testClock(NOW) });
after(() => na[Symbol.asyncDispose]());

/** Verifies the vector over HTTP; with another list of keys, it must be refused. */
async function answered(path: string, { input }: Vector, keys: string): Promise<JsonObject> {
  const refused = await post(na, path, { ...input, [keys]: [newKey().publicKey] });
  assert.equal(refused.status, 200, outcome(refused));
  assert.equal(refused.body.accepted ?? refused.body.valid, false, 'with a key of someone else');
  const answer = await post(na, path, input);
  assert.equal(answer.status, 200, outcome(answer));
  return parsed(answer);
}

// Trust evidence

for (const vector of vectorsNamed('trust_evidence.json', 'te-001')) {
  const { title, input, expected } = vector;
  const digest = String(input.expected_graph_digest);

  test(`${title}: it is accepted`, async () => {
    const evidence = readAs(readTrustEvidence, vector, 'evidence');
    const answer = await answered('/trust-evidence/verify', vector, 'issuer_public_keys');
    assert.deepEqual([answer.accepted, answer.verdict], [expected.accepted, expected.verdict]);
    const { evidence_id, issuer_sovereign_id } = evidence;
    assert.deepEqual(
      [answer.evidence_id, answer.issuer_sovereign_id],
      [evidence_id, issuer_sovereign_id],
    );
  });

  test(`${title}: the same decision produces the same evidence`, () => {
    const evidence = readAs(readTrustEvidence, vector, 'evidence');
    const decision = readTrustDecision(evidence);
    assert.ok(decision !== null);
    const issuer = issuerOf(evidence.issuer_sovereign_id, goldenKey('na'), evidence.evidence_id);
    assert.deepEqual(buildTrustEvidence(issuer, decision, digest), evidence);
  });
}

// Selective disclosure

const [membership, nullification] = vectorsNamed('selective_disclosure.json', 'sd-001', 'sd-002');
assert.ok(membership !== undefined && nullification !== undefined);

test(`${membership.title}: it is valid`, async () => {
  const commitment = readAs(readCapabilityCommitment, membership, 'commitment');
  const proof = readAs(readCapabilityMembershipProof, membership, 'proof');
  assert.equal(proof.revealed_capability, membership.expected.capability);
  const { valid, commitment_id } = await answered(
    '/disclosure/verify',
    membership,
    'issuer_public_keys',
  );
  assert.deepEqual([valid, commitment_id], [membership.expected.valid, commitment.commitment_id]);
});

test(`${membership.title}: the same capabilities produce the same proof`, async () => {
  const proof = readAs(readCapabilityMembershipProof, membership, 'proof');
  const disclosure = {
    commitmentId: proof.commitment_id,
    capability: proof.revealed_capability,
    capabilities: ['read', 'write', 'audit'],
    prover: proof.prover_sovereign_id,
  };
  assert.deepEqual(proveMembership(disclosure, proof.proof_id, NOW, SHA256), proof);
  const answer = await post(na, '/disclosure/prove', {
    commitment: membership.input.commitment ?? null,
    capability: disclosure.capability,
    capabilities: disclosure.capabilities,
    prover_sovereign_id: disclosure.prover,
  });
  const { proof_id, ...made } = parsed(answer);
  assert.deepEqual({ ...made, proof_id: proof.proof_id }, proof, String(proof_id));
});

test(`${nullification.title}: the same proof produces the same nullifier`, () => {
  const proof = readAs(readCapabilityMembershipProof, nullification, 'proof');
  const given = nullification.expected.nullifier as JsonObject;
  const nullifier = recordReader(CapabilityNullifier)(given);
  assert.ok(nullifier !== null);
  const key = goldenKey('b');
  assert.equal(isSinglySignedByAny(nullifier, [key.publicKey], verifySignature), true);
  assert.equal(isSinglySignedByAny(nullifier, [newKey().publicKey], verifySignature), false);
  const issuer = issuerOf('sovereign-b', key, nullifier.nullifier_id);
  assert.deepEqual(buildNullifier(issuer, proof, nullifier.nonce), given);
});

test(`${nullification.title}: it is issued that way, and once`, async () => {
  const given = nullification.expected.nullifier as JsonObject;
  const answer = await operate(na, '/admin/disclosure/nullifier', nullification.input);
  assert.equal(answer.status, 201, outcome(answer));
  const issued = parsed(answer);
  assert.deepEqual(Object.keys(issued).sort(), Object.keys(given).sort());
  for (const member of ['proof_id', 'issued_at', 'expires_at']) {
    assert.equal(issued[member], given[member], member);
  }
  const { sig } = issued.signature as JsonObject;
  assert.ok(verifySignature(na.audience, canonicalJson(issued, 'signature'), String(sig)));
  const again = await operate(na, '/admin/disclosure/nullifier', nullification.input);
  assert.equal(outcome(again), '422 nullifier_failed');
});

// Consensus

for (const vector of vectorsNamed('consensus.json', 'con-001')) {
  const { title, expected } = vector;

  test(`${title}: it is valid`, async () => {
    const proof = readAs(readConsensusProof, vector, 'proof');
    assert.equal(proof.votes.length, expected.vote_count);
    const answer = await answered('/consensus/verify', vector, 'assembler_public_keys');
    assert.deepEqual(answer, {
      valid: expected.valid,
      reason: 'valid',
      consensus_id: proof.consensus_id,
    });
  });
}

// Data usage

for (const vector of vectorsNamed('data_usage.json', 'du-001')) {
  const { title, expected } = vector;

  test(`${title}: it is valid`, async () => {
    readAs(readDataAccessIntent, vector, 'intent');
    const policy = readAs(readDataLicensePolicy, vector, 'policy');
    assert.equal(isSinglySignedByAny(policy, [goldenKey('na').publicKey], verifySignature), true);
    const answer = await answered('/data-usage/verify', vector, 'agent_public_keys');
    assert.deepEqual(answer, {
      valid: expected.valid,
      violation_reason: null,
      violation_count: expected.violation_count,
      violations: [],
    });
  });
}
