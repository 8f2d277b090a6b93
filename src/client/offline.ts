/**
 * Verifies everything an authority signs, using only the record, the keys and the time. Each check takes a record as
 * received, as JSON text or as the result of `parseJson`, and returns a reason, which is `malformed` for anything that
 * is not such a record.
 */
import type { Sha256, VerifySignature } from '../base/crypto/primitives.ts';
import { readAgentDescriptor } from '../protocol/records/agent-descriptor.ts';
import {
  type AgreementReason,
  readAgreementRecord,
  verifyAgreement,
} from '../protocol/records/agreement.ts';
import {
  type ChainPin,
  type ChainVerdict,
  followChain,
  receivedChain,
} from '../protocol/records/authority-chain.ts';
import {
  type BoundaryReason,
  readBoundaryDecision,
  verifyBoundaryDecision,
} from '../protocol/records/boundary-decision.ts';
import { isBulletinOf, readBulletin } from '../protocol/records/bulletin.ts';
import {
  type DisclosureReason,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
  verifyMembership,
} from '../protocol/records/capability-disclosure.ts';
import {
  type ConsensusReason,
  readConsensusProof,
  verifyConsensusProof,
} from '../protocol/records/consensus-proof.ts';
import {
  findViolations,
  readDataAccessIntent,
  readDataLicensePolicy,
  type ViolationType,
} from '../protocol/records/data-usage.ts';
import { isSignedByRoot, readGenesisBlock } from '../protocol/records/genesis.ts';
import { readJoinCertificate } from '../protocol/records/join-certificate.ts';
import { readPolicyManifest } from '../protocol/records/policy-manifest.ts';
import {
  type AttestationReason,
  readMembershipAttestation,
  readRecognitionPolicy,
  readRecognitionTreaty,
  type TreatyAttestationReason,
  type TreatyReason,
  verifyAttestation,
  verifyAttestationWithTreaty,
  verifyTreaty,
} from '../protocol/records/recognition.ts';
import { type Fresh, instantOf, type RecordReader } from '../protocol/records/record.ts';
import { keyOfFeed, readRevocationFeed } from '../protocol/records/revocation-feed.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../protocol/records/revocation-list.ts';
import {
  applyDelta,
  type DeltaReason,
  readRevocationListDelta,
} from '../protocol/records/revocation-list-delta.ts';
import {
  type CandidateKeys,
  isSignedByAny,
  signedText,
} from '../protocol/records/signed-record.ts';
import {
  type EvidenceReason,
  readTrustEvidence,
  verifyTrustEvidence,
} from '../protocol/records/trust-evidence.ts';
import { type Authority, keysNow } from './authority-signers.ts';
import { verifyText } from './keys.ts';
import { randomNonce } from './options.ts';
import { parsed, type Received } from './received.ts';
import { portableSha256 } from './sha256.ts';

export interface VerifierOptions {
  /** Defaults to portable code; a native implementation is faster. */
  readonly verify?: VerifySignature;
  readonly sha256?: Sha256;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

export type Malformed = 'malformed';
export type GenesisReason = 'valid' | 'wrong_root' | 'invalid_signature';
export type CertificateReason =
  | 'valid'
  | 'wrong_key'
  | 'wrong_network'
  | 'invalid_signature'
  | 'not_yet_valid'
  | 'expired'
  | 'revoked';
/** How far the clocks of a node and its authority may differ, as for signed requests [core-1-6]. */
export const CLOCK_TOLERANCE_MS = 300_000;

export type RevocationListReason = 'valid' | 'invalid_signature' | 'not_yet_valid' | 'stale';
export type RevocationListDeltaReason = DeltaReason | 'not_yet_valid' | 'stale';
export type AgentReason = 'valid' | 'invalid_signature' | 'expired';
export type SignedReason = 'valid' | 'invalid_signature';
export type FeedReason = 'valid' | 'wrong_issuer' | 'invalid_signature' | 'not_yet_valid';

export interface CertificateExpectations {
  /** The genesis of the network, already verified. */
  readonly genesis: Received;
  /** By default only the key of the genesis. */
  readonly authority?: Authority;
  /** A revocation list, already verified; without one, revocation is not checked. */
  readonly crl?: Received;
  /** The key that the certificate must be for; any by default. */
  readonly publicKey?: string;
}

export interface TreatyKnowledge {
  readonly issuerKeys: CandidateKeys;
  /** Any issuer by default. */
  readonly issuer?: string;
  readonly subject?: string;
  /** Whether the verifier knows that the treaty is revoked. */
  readonly revoked?: boolean;
}

type Keys = readonly string[];

export type Verifier = ReturnType<typeof createVerifier>;

export function createVerifier(options: VerifierOptions = {}) {
  const { verify = verifyText, sha256 = portableSha256, now = Date.now } = options;
  const fresh: Fresh = {
    get now() {
      return now();
    },
    uuid: randomNonce,
  };

  /** The check of a record as received. */
  function checking<Item, Given extends readonly unknown[], Reason>(
    read: RecordReader<Item>,
    reasonOf: (record: Item, ...given: Given) => Reason,
  ) {
    return (received: Received, ...given: Given): Reason | Malformed => {
      const record = read(parsed(received), fresh);
      return record === null ? 'malformed' : reasonOf(record, ...given);
    };
  }

  /** Whether the record was dated by a clock that was ahead by more than clocks may differ. */
  function isAhead({ issued_at }: { readonly issued_at: string }): boolean {
    return instantOf(issued_at) > now() + CLOCK_TOLERANCE_MS;
  }

  function periodProblem(list: CertificateRevocationList): 'not_yet_valid' | 'stale' | null {
    if (isAhead(list)) return 'not_yet_valid';
    return now() > instantOf(list.next_update) ? 'stale' : null;
  }

  return {
    /** Checks the signature of the root key. Pin the root key: a genesis cannot vouch for its own. */
    genesis: checking(readGenesisBlock, (genesis, rootPublicKey?: string): GenesisReason => {
      if ((rootPublicKey ?? genesis.root_public_key) !== genesis.root_public_key) {
        return 'wrong_root';
      }
      return isSignedByRoot(genesis, verify) ? 'valid' : 'invalid_signature';
    }),

    /** Follows the statements of an authority-keys document from the pinned key to the current authority key. */
    authorityKeys: checking(
      receivedChain,
      (chain, pin: ChainPin): ChainVerdict => followChain(pin, chain, now(), { verify, sha256 }),
    ),

    certificate(
      received: Received,
      { publicKey, ...expected }: CertificateExpectations,
    ): CertificateReason | Malformed {
      const certificate = readJoinCertificate(parsed(received));
      const genesis = readGenesisBlock(parsed(expected.genesis));
      if (certificate === null || genesis === null) return 'malformed';
      if ((publicKey ?? certificate.node_public_key) !== certificate.node_public_key) {
        return 'wrong_key';
      }
      if (certificate.network_name !== genesis.network_name) return 'wrong_network';
      const { authority = genesis.network_authority.public_key } = expected;
      const keys =
        typeof authority === 'string' ? [authority] : authority.signingAt(certificate.issued_at);
      if (!isSignedByAny(certificate, keys, verify)) return 'invalid_signature';
      const at = now();
      if (at < instantOf(certificate.issued_at)) return 'not_yet_valid';
      if (at > instantOf(certificate.expires_at)) return 'expired';
      if (expected.crl === undefined) return 'valid';
      const crl = readCertificateRevocationList(parsed(expected.crl));
      if (crl === null) return 'malformed';
      const isRevoked = crl.revoked_certificates.some(
        ({ certificate_id }) => certificate_id === certificate.cert_id,
      );
      return isRevoked ? 'revoked' : 'valid';
    },

    /** Checks the first two signatures. Callers that have an older list must also compare sequences. */
    revocationList: checking(
      readCertificateRevocationList,
      (crl, authority: Authority): RevocationListReason => {
        const text = signedText(crl);
        const isSigned = keysNow(authority).some((key) =>
          crl.signatures.slice(0, 2).some(({ sig }) => verify(key, text, sig)),
        );
        if (!isSigned) return 'invalid_signature';
        return periodProblem(crl) ?? 'valid';
      },
    ),

    /** Checks a bulletin. The list, policy and genesis that it names still have to be verified themselves. */
    bulletin: checking(
      readBulletin,
      (bulletin, networkName: string, authority: Authority): SignedReason => {
        const isSigned = keysNow(authority).some((key) =>
          isBulletinOf(bulletin, networkName, key, verify),
        );
        return isSigned ? 'valid' : 'invalid_signature';
      },
    ),

    /**
     * Applies a delta to a list. The new list has the authority's signatures, so it can be passed on and verified like
     * the authority's own; it is null when the reason is not `valid`, `not_yet_valid` or `stale`. `held` must be verified already.
     */
    revocationListDelta(
      received: Received,
      heldList: Received,
      authority: Authority,
    ): {
      readonly reason: RevocationListDeltaReason | Malformed;
      readonly list: CertificateRevocationList | null;
    } {
      const delta = readRevocationListDelta(parsed(received));
      const held = readCertificateRevocationList(parsed(heldList));
      if (delta === null || held === null) return { reason: 'malformed', list: null };
      const { reason, list } = applyDelta(held, delta, keysNow(authority), verify, sha256);
      return { reason: (list && periodProblem(list)) ?? reason, list };
    },

    policy: checking(
      readPolicyManifest,
      (policy, authority: Authority): SignedReason =>
        isSignedByAny(policy, keysNow(authority), verify) ? 'valid' : 'invalid_signature',
    ),

    /** Checks that a descriptor is signed by its own key. The certificate says whether that key belongs to a node. */
    agent: checking(readAgentDescriptor, (descriptor): AgentReason => {
      if (!isSignedByAny(descriptor, [descriptor.node_public_key], verify)) {
        return 'invalid_signature';
      }
      return now() > instantOf(descriptor.expires_at) ? 'expired' : 'valid';
    }),

    /** The policy's revoked ids must include all ids that the verifier knows as revoked. */
    attestation(received: Received, recognitionPolicy: Received): AttestationReason | Malformed {
      const attestation = readMembershipAttestation(parsed(received));
      const policy = readRecognitionPolicy(parsed(recognitionPolicy));
      if (attestation === null || policy === null) return 'malformed';
      return verifyAttestation(attestation, policy, now(), verify);
    },

    attestationWithTreaty(
      received: Received,
      receivedTreaty: Received,
      known: {
        readonly treatyIssuerKeys: CandidateKeys;
        readonly treatyRevoked?: boolean;
        readonly attestationRevoked?: boolean;
      },
    ): TreatyAttestationReason | Malformed {
      const attestation = readMembershipAttestation(parsed(received));
      const treaty = readRecognitionTreaty(parsed(receivedTreaty));
      if (attestation === null || treaty === null) return 'malformed';
      const knowledge = { treatyRevoked: false, attestationRevoked: false, ...known };
      return verifyAttestationWithTreaty(attestation, treaty, knowledge, now(), verify);
    },

    treaty: checking(readRecognitionTreaty, (treaty, known: TreatyKnowledge): TreatyReason => {
      const { issuerKeys, issuer = null, subject = null, revoked = false } = known;
      return verifyTreaty(treaty, { issuerKeys, issuer, subject, revoked }, now(), verify);
    }),

    /** Callers that have an older feed must also compare sequences. */
    feed: checking(readRevocationFeed, (feed, issuer: string, issuerKeys: Keys): FeedReason => {
      if (feed.issuer_sovereign_id !== issuer) return 'wrong_issuer';
      if (keyOfFeed(feed, issuerKeys, verify) === null) return 'invalid_signature';
      return isAhead(feed) ? 'not_yet_valid' : 'valid';
    }),

    agreement: checking(
      readAgreementRecord,
      (agreement, offererKeys: Keys, responderKeys: Keys): AgreementReason =>
        verifyAgreement(agreement, offererKeys, responderKeys, verify),
    ),

    /** Only `authorized` allows access; every other reason is a denial or an invalid decision. */
    decision: checking(
      readBoundaryDecision,
      (decision, operatorKeys: Keys): BoundaryReason =>
        verifyBoundaryDecision(decision, operatorKeys, now(), verify).reason,
    ),

    evidence: checking(
      readTrustEvidence,
      (evidence, issuerKeys: Keys, expectedGraphDigest: string | null = null): EvidenceReason =>
        verifyTrustEvidence(evidence, issuerKeys, expectedGraphDigest, verify),
    ),

    membership(
      received: Received,
      receivedCommitment: Received,
      issuerKeys: Keys,
    ): DisclosureReason | Malformed {
      const proof = readCapabilityMembershipProof(parsed(received), fresh);
      const commitment = readCapabilityCommitment(parsed(receivedCommitment), fresh);
      if (proof === null || commitment === null) return 'malformed';
      return verifyMembership(proof, commitment, issuerKeys, verify, sha256);
    },

    /** Takes the validators' keys by sovereign id. */
    consensus: checking(
      readConsensusProof,
      (proof, validatorKeys: ReadonlyMap<string, string>, assemblerKeys: Keys): ConsensusReason =>
        verifyConsensusProof(proof, validatorKeys, assemblerKeys, now(), verify),
    ),

    /** Returns what the intent declares beyond the policy, or `malformed`; empty when the policy covers it. */
    intent(
      received: Received,
      receivedPolicy: Received,
      agentKeys: Keys,
    ): readonly (ViolationType | Malformed)[] {
      const intent = readDataAccessIntent(parsed(received), fresh);
      const policy = readDataLicensePolicy(parsed(receivedPolicy), fresh);
      if (intent === null || policy === null) return ['malformed'];
      return findViolations(intent, policy, agentKeys, now(), verify).map(({ type }) => type);
    },
  };
}
