/**
 * The built-in trust cycle [core-6-5]: an end-to-end check of recognition. It uses the same builders, verifiers and
 * state machines that serve requests, and an invented peer whose key is discarded at the end. It leaves one audit event
 * and does not affect any other decision.
 */
import type { ImportedFeed, ImportedFeedRefusal } from '../../../machines/revocation-feed.ts';
import type { Resting } from '../../../machines/step.ts';
import { SHA256, sha256Hex } from '../../base/crypto/digest.ts';
import { SEED_BYTES, signerFromSeed, verifySignature } from '../../base/crypto/ed25519.ts';
import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { type Issuer, keysOf, publicKeysOf } from '../../protocol/records/issuer.ts';
import {
  type MembershipAttestation,
  type RecognitionTreaty,
  readMembershipAttestation,
  readRecognitionTreaty,
  verifyAttestationWithTreaty,
} from '../../protocol/records/recognition.ts';
import {
  keyOfFeed,
  readRevocationFeed,
  type SovereignRevocationFeed,
} from '../../protocol/records/revocation-feed.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { issuerOf } from '../engine/issuer.ts';
import { feedRecord, signFeed } from '../lists/feed.ts';
import { refusalIn, transition } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { buildAttestation } from './attestations.ts';
import { buildTreaty } from './treaties.ts';

const PEER = 'trust-cycle-peer';
const ROLE = 'role:trust-cycle';

export const runTrustCycle: Handler<'runTrustCycle'> = (na, unit) => {
  // An unavailable signer must not count as a failed trust cycle.
  na.signer.assertAvailable();
  const started = na.runtime.elapsed();
  const { passed, failedStep } = walkTrustCycle(issuerOf(na, unit), inventedPeer(na, unit));
  const outcome = {
    result: failedStep === null ? 'passed' : 'failed',
    failed_step: failedStep,
    steps: passed,
    duration_ms: Math.round(na.runtime.elapsed() - started),
  };
  const details = { ...outcome, digest: sha256Hex(canonicalJson(outcome)) };
  unit.audit('trust_cycle_completed', details);
  return details;
};

function inventedPeer({ runtime }: Authority, { at }: UnitOfWork): Issuer {
  const signer = signerFromSeed(runtime.randomBytes(SEED_BYTES));
  const uuid = () => runtime.uuid();
  return { sovereignId: PEER, keyId: signer.publicKey, signer, sha256: SHA256, now: at, uuid };
}

/** The data that the steps pass to each other. */
interface Cycle {
  readonly local: Issuer;
  readonly peer: Issuer;
  attestation: MembershipAttestation;
  treaty: RecognitionTreaty;
  feed: SovereignRevocationFeed;
  imported: Resting | undefined;
}

/** The steps in order. A step that returns false or throws ends the cycle. */
const STEPS: readonly (readonly [name: string, holds: (cycle: Cycle) => boolean])[] = [
  ['attestation_issued', attestationIssued],
  ['treaty_issued', treatyIssued],
  ['attestation_accepted', (cycle) => verdictOn(cycle.attestation, cycle) === 'accepted'],
  ['feed_issued', feedIssued],
  ['feed_imported', feedImported],
  ['feed_replay_refused', (cycle) => refusalOfImport(cycle) === 'stale_sequence'],
  ['revoked_attestation_refused', revokedAttestationRefused],
  ['tampered_attestation_refused', tamperedAttestationRefused],
];

export interface TrustCycleCourse {
  /** Names of the steps that passed. */
  readonly passed: readonly string[];
  readonly failedStep: string | null;
}

export function walkTrustCycle(local: Issuer, peer: Issuer): TrustCycleCourse {
  const cycle = { local, peer, imported: undefined } as Cycle;
  const passed: string[] = [];
  for (const [name, holds] of STEPS) {
    if (!passes(holds, cycle)) return { passed, failedStep: name };
    passed.push(name);
  }
  return { passed, failedStep: null };
}

function passes(holds: (cycle: Cycle) => boolean, cycle: Cycle): boolean {
  try {
    return holds(cycle);
  } catch {
    return false;
  }
}

function attestationIssued(cycle: Cycle): boolean {
  const issued = buildAttestation(cycle.peer, {
    subject_id: 'trust-cycle-subject',
    roles: [ROLE],
    validity_hours: 1,
    subject_public_key: null,
    claims: {},
    issuer_sovereign_id: null,
  });
  const received = readMembershipAttestation(asSent(issued));
  if (received === null) return false;
  cycle.attestation = received;
  return true;
}

function treatyIssued(cycle: Cycle): boolean {
  const issued = buildTreaty(cycle.local, {
    subject_sovereign_id: cycle.peer.sovereignId,
    subject_public_keys: [cycle.peer.signer.publicKey],
    scope: { allowed_roles: [ROLE], accepted_statuses: ['active'], claims: {} },
    validity_hours: 1,
    metadata: {},
    issuer_sovereign_id: null,
  });
  const received = readRecognitionTreaty(asSent(issued));
  if (received === null) return false;
  cycle.treaty = received;
  return true;
}

function feedIssued(cycle: Cycle): boolean {
  const { peer, attestation } = cycle;
  const head = { issuer: peer.sovereignId, sequence: 1, feedId: peer.uuid(), issuedAt: peer.now };
  const entries = new Map([[attestation.attestation_id, 'trust cycle']]);
  const issued = signFeed(feedRecord(peer.signer, head, entries), keysOf(peer));
  const received = readRevocationFeed(asSent(issued));
  if (received === null) return false;
  cycle.feed = received;
  return true;
}

function feedImported(cycle: Cycle): boolean {
  if (refusalOfImport(cycle) !== null) return false;
  const imported = cycle.imported?.context as ImportedFeed | undefined;
  return imported?.sequence === '1';
}

function refusalOfImport(cycle: Cycle): ImportedFeedRefusal | null {
  const { feed, treaty } = cycle;
  const imported: ImportedFeed = {
    issuer: feed.issuer_sovereign_id,
    sequence: String(feed.sequence),
    feedId: feed.feed_id,
    revokedCount: feed.revoked_attestation_ids.length,
    importedAt: cycle.local.now,
  };
  const { next, emitted } = transition('revocation-feed', cycle.imported, {
    type: 'import',
    feed: imported,
    signature: signatureOf(feed, treaty.subject_public_keys),
  });
  const refused = refusalIn(emitted);
  if (refused === null) cycle.imported = next;
  return refused?.refusal ?? null;
}

function signatureOf(feed: SovereignRevocationFeed, keys: readonly string[]) {
  return keyOfFeed(feed, keys, verifySignature) === null ? 'invalid_signature' : 'valid';
}

function revokedAttestationRefused(cycle: Cycle): boolean {
  const { attestation, feed } = cycle;
  const revoked = feed.revoked_attestation_ids.includes(attestation.attestation_id);
  return verdictOn(attestation, cycle, revoked) === 'attestation_locally_revoked';
}

function tamperedAttestationRefused(cycle: Cycle): boolean {
  const tampered = { ...cycle.attestation, subject_id: 'somebody-else' };
  return verdictOn(tampered, cycle) === 'attestation_invalid_signature';
}

function verdictOn(
  attestation: MembershipAttestation,
  { local, treaty }: Cycle,
  attestationRevoked = false,
) {
  const treatyIssuerKeys = publicKeysOf(local);
  const known = { treatyIssuerKeys, treatyRevoked: false, attestationRevoked };
  return verifyAttestationWithTreaty(attestation, treaty, known, local.now, verifySignature);
}

/** Serializes a record and parses it again, as the receiving side would. */
function asSent(record: JsonObject): unknown {
  return parseJson(canonicalJson(record));
}
