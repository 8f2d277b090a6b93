/** Signed records with random content: what their signatures cover [core-1-5], and what reading preserves. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import {
  isJsonObject,
  JsonFloat,
  type JsonObject,
  type JsonValue,
} from '../src/base/json/value.ts';
import { canonicalJson, compareCodePoints, jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { readAgentDescriptor } from '../src/protocol/records/agent-descriptor.ts';
import {
  type AgreementRecord,
  agreementText,
  offerProblem,
  readAgreementRecord,
  readCapabilityCounter,
  readCapabilityOffer,
  verifyAgreement,
} from '../src/protocol/records/agreement.ts';
import {
  readBoundaryDecision,
  verifyBoundaryDecision,
} from '../src/protocol/records/boundary-decision.ts';
import {
  type CapabilityCommitment,
  CapabilityNullifier,
  membershipProofDigest,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
  revealsItsLeaf,
  verifyMembership,
} from '../src/protocol/records/capability-disclosure.ts';
import { leafHash, merkleRoot } from '../src/protocol/records/capability-tree.ts';
import { CASCADE_THRESHOLD, scoreCascade } from '../src/protocol/records/cascade.ts';
import {
  readConsensusProof,
  verifyConsensusProof,
} from '../src/protocol/records/consensus-proof.ts';
import {
  type DataAccessIntent,
  type DataLicensePolicy,
  findViolations,
  readDataAccessIntent,
  readDataLicensePolicy,
  readDataSourceDescriptor,
} from '../src/protocol/records/data-usage.ts';
import {
  justificationDigest,
  readJustificationProof,
} from '../src/protocol/records/justification-proof.ts';
import { readMembershipAttestation } from '../src/protocol/records/membership-attestation.ts';
import { readRecognitionTreaty } from '../src/protocol/records/recognition-treaty.ts';
import { type Fresh, type RecordReader, recordReader } from '../src/protocol/records/record.ts';
import { readRevocationFeed } from '../src/protocol/records/revocation-feed.ts';
import {
  isSignedByAny,
  isSinglySignedByAny,
  type SignedRecord,
  signatureOver,
  signRecord,
  signSingly,
  soleSigner,
} from '../src/protocol/records/signed-record.ts';
import {
  readTrustDecision,
  readTrustEvidence,
  verifyTrustEvidence,
} from '../src/protocol/records/trust-evidence.ts';
import { readValidatorVote } from '../src/protocol/records/validator-vote.ts';
import {
  isLeaf,
  type Node,
  nodesOf,
  type Path,
  put,
  rebuilt,
  variantsOf,
} from './support/altered.ts';
import {
  agreementDraft,
  attestationDraft,
  COMMITTED,
  castBy,
  commitmentDraft,
  consensusDraft,
  consensusOf,
  counterDraft,
  decisionDraft,
  descriptorDraft,
  evidenceDraft,
  FAR,
  feedDraft,
  intentDraft,
  json,
  justificationDraft,
  MEMBER,
  membershipDraft,
  NOW,
  nullifierDraft,
  OWN_KEY,
  offerDraft,
  policyDraft,
  proofOf,
  SIGNER,
  STRANGER,
  source,
  text,
  treatyDraft,
  trustDecisionDraft,
  VALIDATOR_MAP,
  voteDraft,
} from './support/trust-drafts.ts';

/** A policy that licenses exactly what the intent declares. */
function licenseFor(intent: DataAccessIntent): DataLicensePolicy {
  return {
    policy_id: 'policy-1',
    licensor_sovereign_id: 'alpha',
    licensee_sovereign_id: 'beta',
    allowed_source_ids: intent.declared_sources.map(({ source_id }) => source_id),
    allowed_access_types: ['read', ...intent.declared_access_types],
    max_volume_bytes_per_session: null,
    prohibited_classification_tags: [],
    valid_from: formatInstant(NOW),
    valid_until: FAR[0],
    signature: null,
  };
}

/** A kind of signed record. Verdicts are the reasons of its verification [trust-4], [trust-6]. */
interface Kind {
  readonly name: string;
  readonly signed: fc.Arbitrary<JsonObject>;
  read(received: unknown, fresh?: Fresh): JsonObject | null;
  /** Null if the reader refuses the received record. */
  judge(received: unknown, keys: readonly string[]): string | null;
  readonly own: 'signature' | 'signatures';
  readonly genuine: string;
  readonly forged: string;
  /** The verdict without any signature. */
  readonly missing: string;
  /** Members for which changes are reported for another reason than the signature. */
  readonly otherReasons: { readonly [member: string]: string };
}

interface Making<T> extends Pick<Kind, 'name' | 'own' | 'genuine' | 'forged' | 'missing'> {
  readonly signed: fc.Arbitrary<JsonObject>;
  readonly read: RecordReader<T>;
  readonly verdict: (record: T, keys: readonly string[]) => string;
  readonly otherReasons?: Kind['otherReasons'];
}

function kind<T extends JsonObject>({ verdict, otherReasons = {}, ...making }: Making<T>): Kind {
  return {
    ...making,
    otherReasons,
    judge(received, keys) {
      const record = making.read(received);
      return record === null ? null : verdict(record, keys);
    },
  };
}

function listed(draft: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return draft.map((members) => signRecord(members, soleSigner(SIGNER, 'key')));
}

function singly(draft: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return draft.map((members) => signSingly(members, soleSigner(SIGNER, 'key')));
}

/** Signs the seven members that counters and agreements share. */
function agreed(draft: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return draft.map((members) => {
    const over = agreementText(members as unknown as AgreementRecord);
    return { ...members, signatures: [signatureOver(over, soleSigner(SIGNER, 'key'))] };
  });
}

const AGREED_VERDICTS = {
  own: 'signatures',
  genuine: 'accepted',
  forged: 'invalid_offerer_signature',
  missing: 'missing_offerer_signature',
} as const;

/** No endpoint verifies these alone, so only the signature is checked. */
const SIGNATURE_VERDICTS = {
  own: 'signature',
  genuine: 'signed',
  forged: 'not signed',
  missing: 'not signed',
} as const;

function signatureVerdict(
  record: Parameters<typeof isSinglySignedByAny>[0],
  keys: readonly string[],
): string {
  return isSinglySignedByAny(record, keys, verifySignature) ? 'signed' : 'not signed';
}

/** Where these count depends on a policy or a treaty, so only the signature is checked. */
const RECOGNITION: readonly (readonly [
  string,
  fc.Arbitrary<JsonObject>,
  RecordReader<SignedRecord>,
])[] = [
  ['MembershipAttestation', attestationDraft, readMembershipAttestation],
  ['RecognitionTreaty', treatyDraft, readRecognitionTreaty],
  ['SovereignRevocationFeed', feedDraft, readRevocationFeed],
  ['AgentDescriptor', descriptorDraft, readAgentDescriptor],
];

const KINDS: readonly Kind[] = [
  ...RECOGNITION.map(([name, draft, read]) =>
    kind({
      name,
      signed: listed(draft),
      read,
      verdict: (record, keys) =>
        isSignedByAny(record, keys, verifySignature) ? 'signed' : 'not signed',
      ...SIGNATURE_VERDICTS,
      own: 'signatures',
    }),
  ),
  kind({
    name: 'TrustEvidence',
    signed: listed(evidenceDraft),
    read: readTrustEvidence,
    verdict: (evidence, keys) => verifyTrustEvidence(evidence, keys, null, verifySignature),
    own: 'signatures',
    genuine: 'accepted',
    forged: 'invalid_signature',
    missing: 'missing_signature',
  }),
  kind({
    name: 'CapabilityOffer',
    signed: listed(offerDraft),
    read: readCapabilityOffer,
    verdict: (offer, offererKeys) =>
      offerProblem(offer, { sovereignId: 'beta', offererKeys, now: NOW }, verifySignature) ??
      'usable',
    own: 'signatures',
    genuine: 'usable',
    forged: 'invalid_offer_signature',
    missing: 'invalid_offer_signature',
    otherReasons: { responder_sovereign_id: 'not_a_party' },
  }),
  kind({
    // The signer of a counter has also signed the agreement created from it.
    name: 'CapabilityCounter',
    signed: agreed(counterDraft),
    read: readCapabilityCounter,
    verdict: (counter, keys) =>
      verifyAgreement(
        { ...counter, agreement_id: 'a', established_at: FAR[0] },
        keys,
        keys,
        verifySignature,
      ),
    ...AGREED_VERDICTS,
    otherReasons: { expires_at: 'accepted' },
  }),
  kind({
    name: 'AgreementRecord',
    signed: agreed(agreementDraft),
    read: readAgreementRecord,
    verdict: (agreement, keys) => verifyAgreement(agreement, keys, keys, verifySignature),
    ...AGREED_VERDICTS,
    otherReasons: { agreement_id: 'accepted', established_at: 'accepted', expires_at: 'accepted' },
  }),
  kind({
    name: 'BoundaryDecision',
    signed: singly(decisionDraft),
    read: readBoundaryDecision,
    verdict(decision, keys) {
      const { accepted, authorized, reason } = verifyBoundaryDecision(
        decision,
        keys,
        NOW,
        verifySignature,
      );
      assert.equal(authorized, accepted && decision.authorized, 'never on its own word alone');
      return reason;
    },
    own: 'signature',
    genuine: 'authorized',
    forged: 'invalid_signature',
    missing: 'missing_signature',
  }),
  kind({
    name: 'ValidatorVote',
    signed: voteDraft('val-1').map(castBy),
    read: readValidatorVote,
    verdict: (vote, [key = '']) =>
      verifyConsensusProof(
        consensusOf([vote]),
        new Map([['val-1', key]]),
        OWN_KEY,
        NOW,
        verifySignature,
      ),
    own: 'signature',
    genuine: 'valid',
    forged: 'invalid_vote_signature',
    missing: 'invalid_vote_signature',
    otherReasons: {
      proof_id: 'proof_id_mismatch',
      decision_id: 'proof_id_mismatch',
      validator_sovereign_id: 'vote_not_in_validator_set',
    },
  }),
  kind({
    name: 'ConsensusProof',
    signed: singly(consensusDraft),
    read: readConsensusProof,
    verdict: (proof, keys) =>
      verifyConsensusProof(proof, VALIDATOR_MAP, keys, NOW, verifySignature),
    own: 'signature',
    genuine: 'valid',
    forged: 'invalid_assembler_signature',
    missing: 'missing_signature',
  }),
  kind({
    name: 'CapabilityCommitment',
    signed: singly(commitmentDraft),
    read: readCapabilityCommitment,
    verdict: (commitment, keys) =>
      verifyMembership(MEMBER, commitment, keys, verifySignature, SHA256),
    own: 'signature',
    genuine: 'valid',
    forged: 'commitment_invalid_signature',
    missing: 'commitment_not_signed',
  }),
  kind({
    name: 'CapabilityNullifier',
    signed: singly(nullifierDraft),
    read: recordReader(CapabilityNullifier),
    verdict: signatureVerdict,
    ...SIGNATURE_VERDICTS,
  }),
  kind({
    name: 'DataLicensePolicy',
    signed: singly(policyDraft),
    read: readDataLicensePolicy,
    verdict: signatureVerdict,
    ...SIGNATURE_VERDICTS,
  }),
  kind({
    name: 'DataAccessIntent',
    signed: singly(intentDraft),
    read: readDataAccessIntent,
    verdict(intent, keys) {
      const found = findViolations(intent, licenseFor(intent), keys, NOW, verifySignature).map(
        ({ type }) => type,
      );
      return found.length === 0 ? 'valid' : found.join();
    },
    own: 'signature',
    genuine: 'valid',
    forged: 'intent_exceeds_license',
    missing: 'intent_exceeds_license',
  }),
];

/** Free-form members: everything below them is part of the record. */
const FREE = new Set([
  ...['metadata', 'claims', 'offerer_evidence', 'responder_evidence', 'signals'],
  'revocation_reasons',
]);
const DATETIME = /_(at|from|until)$/;

function isBelowFree(path: Path): boolean {
  // The scope of terms is free-form, but not that of a treaty.
  return path.some((step, at) => FREE.has(String(step)) || (step === 'scope' && at > 0));
}

const REWRITINGS: readonly (readonly [string, (record: JsonObject) => JsonValue])[] = [
  ['sent as JSON and parsed', (record) => parseJson(jsonText(record))],
  ['sent as ASCII, escaped and sorted', (record) => parseJson(canonicalJson(record))],
  ['with its members in another order', (record) => rebuilt(record, turned)],
  ['with unknown members', (record) => rebuilt(record, joinedByStranger)],
  ['with datetimes and integers spelled in another way', (record) => rebuilt(record, respelled)],
];

function turned({ value }: Node): JsonValue {
  return isJsonObject(value) ? Object.fromEntries(Object.entries(value).reverse()) : value;
}

function joinedByStranger({ path, value }: Node): JsonValue {
  return isJsonObject(value) && !isBelowFree(path) ? { ...value, unknown_member: [1] } : value;
}

function respelled({ path, value }: Node): JsonValue {
  if (isBelowFree(path)) return value;
  if (typeof value === 'number') return new JsonFloat(value);
  const name = String(path.at(-1));
  if (typeof value !== 'string' || !DATETIME.test(name) || name === 'evaluated_at') return value;
  return value
    .replace('T', ' ')
    .replace(/Z$/, '-00:00')
    .replace(/(\.\d+)/, '$19');
}

for (const subject of KINDS) {
  const { name, signed, read, judge, own, genuine, forged, missing, otherReasons } = subject;

  test(`${name}: no signed member can be changed unnoticed`, () => {
    fc.assert(
      fc.property(signed, (record) => {
        assert.equal(judge(record, OWN_KEY), genuine);
        const before = canonicalJson(read(record));
        for (const { path, value } of nodesOf(record)) {
          const member = String(path[0]);
          if (member === own) continue;
          const statuses = value === 'active' || value === 'suspended' ? ['revoked'] : [];
          const altered = [...variantsOf(value), ...statuses, undefined].flatMap((variant) => {
            const changed = put(record, path, variant) ?? null;
            const reading = read(changed);
            return reading === null || canonicalJson(reading) === before ? [] : [changed];
          });
          const at = path.join('.');
          // An id that has a reason is what the reason is for.
          const isReasoned = member === 'revoked_attestation_ids';
          assert.ok(altered.length > 0 || !isLeaf(value) || isReasoned, `${at} cannot be changed`);
          const expected = otherReasons[member] ?? forged;
          for (const changed of altered) assert.equal(judge(changed, OWN_KEY), expected, at);
        }
      }),
      { numRuns: 8 },
    );
  });

  test(`${name}: no byte of its text can be changed unnoticed`, () => {
    const [record = {}] = fc.sample(signed, { seed: 1, numRuns: 1 });
    const said = canonicalJson(read(record), own);
    const bytes = Buffer.from(jsonText(record));
    for (const at of bytes.keys()) {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ ([0x01, 0x02, 0x20][at % 3] ?? 0);
      const received = parsedOrNull(copy.toString('utf8'));
      if (judge(received, OWN_KEY) !== genuine) continue;
      const reading = read(received) ?? {};
      const member = String(
        Object.keys(otherReasons).find((name) => reading[name] !== record[name]),
      );
      if (otherReasons[member] === genuine) continue;
      assert.equal(canonicalJson(reading, own), said, copy.toString('utf8'));
      assert.equal(signatureOf(reading, own).sig, signatureOf(record, own).sig);
    }
  });

  test(`${name}: it depends on its signature and the key it is verified with`, () => {
    fc.assert(
      fc.property(signed, fc.nat({ max: 63 }), text, (record, at, label) => {
        const resigned = (change: (item: JsonObject) => JsonObject) =>
          put(record, own === 'signature' ? [own] : [own, 0], change(signatureOf(record, own)));
        const damaged = resigned((item) => ({ ...item, sig: flipped(String(item.sig), at) }));
        assert.equal(judge(damaged, OWN_KEY), forged);
        const relabeled = resigned((item) => ({ ...item, key_id: label }));
        assert.equal(judge(relabeled, OWN_KEY), genuine, 'key_id selects nothing');
        assert.equal(judge(record, [STRANGER.publicKey]), forged);
        assert.equal(judge(record, []), forged);
        const nothing = own === 'signature' ? null : [];
        assert.equal(judge(put(record, [own], nothing), OWN_KEY), missing);
        assert.equal(judge(put(record, [own], undefined), OWN_KEY), missing);
        const pretty = JSON.stringify(JSON.parse(canonicalJson(record, own)), null, 1);
        const elsewise = resigned((item) => ({ ...item, sig: SIGNER.sign(pretty) }));
        assert.equal(judge(elsewise, OWN_KEY), forged, 'over another form of its text');
      }),
      { numRuns: 12 },
    );
  });

  test(`${name}: it is the same record however it is sent, and read again`, () => {
    fc.assert(
      fc.property(signed, (record) => {
        const reading = read(record);
        assert.ok(reading !== null);
        const canonical = canonicalJson(reading);
        assert.equal(canonical, canonicalJson(record), 'reading kept all of it');
        assert.equal(canonicalJson(read(reading)), canonical);
        for (const [how, rewrite] of REWRITINGS) {
          const rewritten = rewrite(record);
          assert.equal(judge(rewritten, OWN_KEY), genuine, how);
          assert.equal(canonicalJson(read(rewritten)), canonical, how);
        }
      }),
      { numRuns: 12 },
    );
  });
}

function parsedOrNull(sent: string): JsonValue {
  try {
    return parseJson(sent);
  } catch (cause) {
    if (cause instanceof SyntaxError) return null;
    throw cause;
  }
}

function signatureOf(record: JsonObject, own: Kind['own']): JsonObject {
  const signature = own === 'signature' ? record.signature : (record.signatures as JsonValue[])[0];
  return signature as JsonObject;
}

/** The base64 text with one bit of one byte flipped. */
function flipped(base64: string, at: number): string {
  const bytes = Buffer.from(base64, 'base64');
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes.toString('base64');
}

/** What is received, how it is read, and everything that is then done with it. */
type Received = Pick<Kind, 'name' | 'read' | 'judge'> & { readonly sent: fc.Arbitrary<JsonObject> };

const RECEIVED: readonly Received[] = [
  ...KINDS.map(({ signed, ...rest }) => ({ ...rest, sent: signed })),
  {
    name: 'JustificationProof',
    sent: justificationDraft,
    read: readJustificationProof,
    judge: (record) =>
      digestOf(readJustificationProof(record), (proof) => justificationDigest(proof, SHA256)),
  },
  {
    name: 'CapabilityMembershipProof',
    sent: membershipDraft,
    read: readCapabilityMembershipProof,
    judge: (record) =>
      digestOf(readCapabilityMembershipProof(record), (proof) => {
        const commitment = commitmentTo(COMMITTED, { capability_count: proof.merkle_path.length });
        assert.equal(
          revealsItsLeaf(proof, SHA256),
          proof.leaf_hash === leafHash(proof.revealed_capability, SHA256),
        );
        return (
          membershipProofDigest(proof, SHA256) +
          verifyMembership(proof, commitment, OWN_KEY, verifySignature, SHA256)
        );
      }),
  },
  {
    name: 'DataSourceDescriptor',
    sent: source,
    read: readDataSourceDescriptor,
    judge: (record) => digestOf(readDataSourceDescriptor(record), canonicalJson),
  },
  {
    name: 'TrustDecision',
    sent: trustDecisionDraft,
    read: readTrustDecision,
    judge: (record) => digestOf(readTrustDecision(record), canonicalJson),
  },
];

function digestOf<T>(record: T | null, digest: (record: T) => string): string | null {
  return record === null ? null : digest(record);
}

/** Keys as callers may send them. */
const keyText = fc.oneof(
  text,
  fc
    .uint8Array({ minLength: 30, maxLength: 34 })
    .map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.constantFrom(
    SIGNER.publicKey,
    STRANGER.publicKey,
    Buffer.alloc(32).toString('base64'),
    Buffer.alloc(32, 255).toString('base64'),
    SIGNER.publicKey.replace('=', ''),
    `${SIGNER.publicKey}\n`,
  ),
);
const keyLists = fc.array(keyText, { maxLength: 40 });
const damages = fc.array(fc.tuple(fc.nat(), fc.option(json, { nil: undefined })), {
  minLength: 1,
  maxLength: 3,
});

for (const { name, sent, read, judge } of RECEIVED) {
  test(`${name}: anything sent as one is read as one, once and for all, or refused`, () => {
    const fresh: Fresh = { now: NOW, uuid: () => '00000000-0000-4000-8000-000000000000' };
    const check = (received: JsonValue, keys: readonly string[]) => {
      const reading = read(received, fresh);
      if (reading === null) return assert.equal(read(received), null, 'nor without fresh values');
      const canonical = canonicalJson(reading);
      assert.equal(canonicalJson(read(reading)), canonical, 'read again, without fresh values');
      assert.equal(canonicalJson(read(parseJson(jsonText(reading)))), canonical);
      assert.equal(typeof judge(reading, keys), 'string');
    };
    fc.assert(
      fc.property(sent, damages, keyLists, (record, changes, keys) => {
        let received: JsonValue = record;
        for (const [pick, change] of changes) {
          const nodes = nodesOf(received);
          received = put(received, nodes[pick % nodes.length]?.path ?? [], change) ?? null;
        }
        check(received, keys);
      }),
      { numRuns: 50 },
    );
    fc.assert(fc.property(json, keyLists, check), { numRuns: 20 });
  });
}

const capability = text.filter((tag) => tag !== '');
/** Sets with duplicates: few distinct texts in many places. */
const capabilitySets = fc.oneof(
  fc.array(capability, { minLength: 1, maxLength: 70, size: 'max' }),
  fc.array(fc.constantFrom<string[]>('a', 'b', '\ue000', '\u{1f600}'), {
    minLength: 1,
    maxLength: 20,
  }),
);

function commitmentTo(
  capabilities: readonly string[],
  changes: Partial<CapabilityCommitment> = {},
): CapabilityCommitment {
  const commitment = {
    commitment_id: 'commitment-1',
    merkle_root: merkleRoot(capabilities, SHA256),
    capability_count: capabilities.length,
    agreement_id: 'agreement-1',
    committed_at: formatInstant(NOW),
    issuer_sovereign_id: 'alpha',
    ...changes,
  };
  return signSingly(commitment, soleSigner(SIGNER, 'key'));
}

/** The root over the leaves, computed exactly as specified [trust-3-3], from the root down. */
function referenceRoot(capabilities: readonly string[]): string {
  const leaves = capabilities.toSorted(compareCodePoints).map((tag) => hashOf(tag));
  let width = 1;
  while (width < leaves.length) width *= 2;
  const rootOf = (from: number, size: number): Buffer =>
    size === 1
      ? (leaves[from] ?? hashOf(''))
      : hashOf(Buffer.concat([rootOf(from, size / 2), rootOf(from + size / 2, size / 2)]));
  return rootOf(0, width).toString('hex');
}

function hashOf(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}

test('every capability of a set has a proof of membership, with a path of the bits of the count less one', () => {
  fc.assert(
    fc.property(capabilitySets, (capabilities) => {
      const commitment = commitmentTo(capabilities);
      assert.equal(commitment.merkle_root, referenceRoot(capabilities));
      const length = Math.ceil(Math.log2(capabilities.length));
      for (const member of new Set(capabilities)) {
        const proof = proofOf(capabilities, member);
        assert.equal(proof.merkle_path.length, length);
        assert.equal(
          verifyMembership(proof, commitment, OWN_KEY, verifySignature, SHA256),
          'valid',
        );
        assert.deepEqual(readCapabilityMembershipProof(parseJson(jsonText(proof))), proof);
      }
    }),
    { numRuns: 25 },
  );
});

test('the order of a set changes neither its root nor its proofs', () => {
  const pairs = capabilitySets.chain((set) =>
    fc.tuple(fc.constant(set), fc.shuffledSubarray(set, { minLength: set.length })),
  );
  fc.assert(
    fc.property(pairs, ([capabilities, shuffled]) => {
      const [member = ''] = capabilities;
      assert.equal(merkleRoot(shuffled, SHA256), merkleRoot(capabilities, SHA256));
      assert.deepEqual(proofOf(shuffled, member), proofOf(capabilities, member));
    }),
    { numRuns: 25 },
  );
});

type Ballot = Parameters<typeof scoreCascade>[0][number];

function ballotAt(validator: string, micros: number, digest: string | null): Ballot {
  const voted_at = formatInstant(NOW + micros / 1000);
  return { vote: true, validator_sovereign_id: validator, voted_at, context_digest: digest };
}

const digests = fc.option(fc.constantFrom('d1', 'd2', 'd3'), { freq: 5 });
const micros = fc.oneof(fc.nat({ max: 1_000_000 }), fc.nat({ max: 120_000_000 }));
/** Ballots of distinct validators, each at a different time. */
const ballots = fc
  .uniqueArray(fc.tuple(micros, digests), { selector: ([at]) => at, maxLength: 12 })
  .map((list) => list.map(([at, digest], index) => ballotAt(`val-${index}`, at, digest)));

function assertSameScore(of: readonly Ballot[], as: readonly Ballot[]): void {
  const [found, expected] = [scoreCascade(of), scoreCascade(as)];
  assert.ok(Math.abs(found.score - expected.score) < 1e-9, `${found.score}, ${expected.score}`);
  assert.equal(found.approvals, expected.approvals);
  assert.equal(found.uniqueDigests, expected.uniqueDigests);
}

test('a cascade score is within 0 and 1, whatever the order of the votes', () => {
  const orders = ballots.chain((list) =>
    fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
  );
  fc.assert(
    fc.property(orders, ([votes, shuffled]) => {
      const { score, contextDivergence, temporalClustering, blocked, approvals } =
        scoreCascade(votes);
      for (const part of [score, contextDivergence, temporalClustering]) {
        assert.ok(part >= 0 && part <= 1, `${part}`);
      }
      assert.equal(blocked, score > CASCADE_THRESHOLD);
      assert.equal(approvals, votes.length);
      assertSameScore(shuffled, votes);
      const rejecting = votes.map((vote) => ({ ...vote, vote: false }));
      assertSameScore([...rejecting, ...votes], votes);
      assert.equal(scoreCascade(rejecting).score, 0);
    }),
    { numRuns: 150 },
  );
});
