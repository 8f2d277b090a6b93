/**
 * CapabilityOffer, CapabilityCounter and AgreementRecord: how two sovereigns agree on capabilities
 * [trust-2-3] to [trust-2-5], [trust-4-2], [trust-4-3], [trust-6-1].
 *
 * Counter and agreement share one signed form of seven members, so the responder's signature on a counter stays valid
 * in the agreement made from it. Anyone can change the other members (`agreement_id`, `established_at`, `expires_at`),
 * so no decision depends on them.
 */

import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type BuildFailure, type Issuer, keysOf, publicKeysOf } from './issuer.ts';
import {
  BoundedSignatures,
  Datetime,
  FreeForm,
  FreshDatetime,
  FreshId,
  instantOf,
  MAX_CAPABILITIES,
  MAX_SIGNATURES,
  recordReader,
  type SignatureItem,
  Whole,
} from './record.ts';
import {
  bytesOfText,
  coversText,
  isSignedByAny,
  signaturesOver,
  signRecord,
  withinBudget,
} from './signed-record.ts';
import type { TrustEvidence } from './trust-evidence.ts';

export const AgreementTerms = Type.Object({
  /** In the given order, including duplicates; compared as a set. */
  capabilities: Type.Array(Type.String(), { default: [], maxItems: MAX_CAPABILITIES }),
  scope: FreeForm,
  valid_from: Datetime,
  valid_until: Datetime,
  freshness_commitment: Type.Integer({ minimum: 0, default: 0 }),
});
export type AgreementTerms = Static<typeof AgreementTerms>;

export const CapabilityOffer = Type.Object({
  offer_id: FreshId,
  offerer_sovereign_id: Type.String(),
  responder_sovereign_id: Type.String(),
  requested_terms: AgreementTerms,
  graph_digest: Type.String(),
  /** Kept verbatim, because evidence inside an offer is free-form. */
  offerer_evidence: Whole,
  expires_at: Datetime,
  created_at: FreshDatetime,
  signatures: BoundedSignatures,
});
export type CapabilityOffer = Static<typeof CapabilityOffer>;

export const readCapabilityOffer = recordReader(CapabilityOffer);

const AGREED = {
  offer_id: Type.String(),
  offerer_sovereign_id: Type.String(),
  responder_sovereign_id: Type.String(),
  agreed_terms: AgreementTerms,
  offerer_evidence: Whole,
  responder_evidence: Whole,
  graph_digest: Type.String(),
};

export const CapabilityCounter = Type.Object({
  ...AGREED,
  expires_at: Datetime,
  signatures: BoundedSignatures,
});
export type CapabilityCounter = Static<typeof CapabilityCounter>;

export const readCapabilityCounter = recordReader(CapabilityCounter);

export const AgreementRecord = Type.Object({
  agreement_id: FreshId,
  ...AGREED,
  established_at: FreshDatetime,
  expires_at: Datetime,
  signatures: BoundedSignatures,
});
export type AgreementRecord = Static<typeof AgreementRecord>;

export const readAgreementRecord = recordReader(AgreementRecord);

/** The seven members that signatures on counters and agreements cover. */
export type AgreedMembers = Pick<AgreementRecord, keyof typeof AGREED>;

/** The text that a signature on a counter or an agreement covers. */
export function agreementText(record: AgreedMembers): string {
  return canonicalJson({
    agreed_terms: record.agreed_terms,
    graph_digest: record.graph_digest,
    offer_id: record.offer_id,
    offerer_evidence: record.offerer_evidence,
    offerer_sovereign_id: record.offerer_sovereign_id,
    responder_evidence: record.responder_evidence,
    responder_sovereign_id: record.responder_sovereign_id,
  });
}

/** Whether any signature of the counter or agreement verifies under any of the keys. */
export function isAgreedByAny(
  record: AgreedMembers & { readonly signatures: readonly SignatureItem[] },
  publicKeys: readonly string[],
  verify: VerifySignature,
): boolean {
  return coversText(record.signatures, agreementText(record), publicKeys, verify);
}

/**
 * The keys of a sovereign according to our treaties in force with it, none if all of them have ended; null if we never
 * had one.
 */
export type TreatyKeys = (sovereignId: string) => readonly string[] | null;

export type AgreementProblem =
  | 'agreement_not_signed_here'
  | 'not_a_party'
  | 'treaty_ended'
  | 'agreement_not_signed_by_other';

/**
 * Why the agreement is no ground for a decision or a commitment of the issuer [trust-4-4]; null if it is one. The other
 * party has signed under a key of our treaties with it, or, if there never was one, under the key that it names.
 */
export function agreementProblem(
  issuer: Issuer,
  agreement: AgreementRecord,
  treatyKeys: TreatyKeys,
  verify: VerifySignature,
): AgreementProblem | null {
  const { sovereignId } = issuer;
  const { offerer_sovereign_id: offerer, responder_sovereign_id: responder } = agreement;
  const { signatures } = agreement;
  const ours = publicKeysOf(issuer);
  const text = bytesOfText(agreementText(agreement));
  const check = withinBudget(verify);
  if (!coversText(signatures, text, ours, check)) return 'agreement_not_signed_here';
  if (offerer !== sovereignId && responder !== sovereignId) return 'not_a_party';
  const other = offerer === sovereignId ? responder : offerer;
  if (other === sovereignId) return null;
  const theirs = treatyKeys(other);
  if (theirs?.length === 0) return 'treaty_ended';
  // We may answer our own offer, and then sign for the other party too [trust-4-2].
  if (offerer === sovereignId) return null;
  const named = theirs ?? signatures.map(({ key_id }) => key_id);
  const candidates = named.filter((key) => !ours.includes(key));
  return coversText(signatures, text, candidates, check) ? null : 'agreement_not_signed_by_other';
}

/** Datetimes in their canonical spelling. */
export interface RequestedTerms {
  readonly capabilities: readonly string[];
  readonly scope: JsonObject;
  readonly valid_from: string;
  readonly valid_until: string;
}

export interface OfferRequest extends RequestedTerms {
  readonly responder_sovereign_id: string;
  readonly expires_at: string;
}

/** `evidence` is our evidence about the responder. */
export function buildOffer(
  issuer: Issuer,
  { responder_sovereign_id, expires_at, ...terms }: OfferRequest,
  evidence: TrustEvidence,
): CapabilityOffer {
  const offer = {
    offer_id: issuer.uuid(),
    offerer_sovereign_id: issuer.sovereignId,
    responder_sovereign_id,
    requested_terms: termsOf(terms),
    graph_digest: evidence.graph_digest,
    offerer_evidence: evidence,
    expires_at,
    created_at: formatInstant(issuer.now),
  };
  const { signatures } = signRecord(offer, keysOf(issuer));
  return { ...offer, signatures: [...signatures] };
}

function termsOf({ capabilities, ...terms }: RequestedTerms): AgreementTerms {
  return { capabilities: [...capabilities], ...terms, freshness_commitment: 0 };
}

/** The context needed to check the signatures of a party. */
export interface OfferKnowledge {
  /** This sovereign. */
  readonly sovereignId: string;
  /** The keys that the offerer may have signed with. */
  readonly offererKeys: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type OfferProblem =
  | 'not_a_party'
  | 'invalid_offer_signature'
  | 'offer_expired'
  | 'offerer_evidence_blocks';

/** Why the offer cannot be answered; null if it can. */
export function offerProblem(
  offer: CapabilityOffer,
  known: OfferKnowledge,
  verify: VerifySignature,
): OfferProblem | null {
  const { offerer_sovereign_id: offerer, responder_sovereign_id: responder } = offer;
  if (offerer !== known.sovereignId && responder !== known.sovereignId) return 'not_a_party';
  if (!isSignedByAny(offer, known.offererKeys, verify)) return 'invalid_offer_signature';
  if (known.now > instantOf(offer.expires_at)) return 'offer_expired';
  return offer.offerer_evidence.verdict === 'block' ? 'offerer_evidence_blocks' : null;
}

/** Counters a usable offer with narrower terms; `evidence` is about the offerer. */
export function buildCounter(
  issuer: Issuer,
  offer: CapabilityOffer,
  terms: RequestedTerms,
  evidence: TrustEvidence,
): CapabilityCounter | BuildFailure<'capabilities_not_offered'> {
  if (!isSubset(terms.capabilities, offer.requested_terms.capabilities)) {
    return { unbuilt: 'capabilities_not_offered' };
  }
  const agreed = agreedMembers(offer, termsOf(terms), evidence);
  return {
    ...agreed,
    expires_at: offer.expires_at,
    signatures: signaturesOver(agreementText(agreed), keysOf(issuer)),
  };
}

/** Accepts a usable offer unchanged; `evidence` is about the offerer. */
export function acceptOffer(
  issuer: Issuer,
  offer: CapabilityOffer,
  evidence: TrustEvidence,
): AgreementRecord {
  return establish(issuer, agreedMembers(offer, offer.requested_terms, evidence), []);
}

export type CounterProblem =
  | 'capabilities_not_offered'
  | 'offer_id_mismatch'
  | 'counter_differs_from_offer'
  | 'not_the_offerer'
  | 'counter_expired'
  | 'too_many_signatures'
  | 'invalid_counter_signature';

/** Why the counter to our usable offer cannot be accepted; null if it can. */
export function counterProblem(
  counter: CapabilityCounter,
  offer: CapabilityOffer,
  known: {
    readonly sovereignId: string;
    readonly responderKeys: readonly string[];
    /** How many signatures an agreement gets from us. */
    readonly ourSignatures: number;
    readonly now: number;
  },
  verify: VerifySignature,
): CounterProblem | null {
  const { agreed_terms: agreed } = counter;
  if (!isSubset(agreed.capabilities, offer.requested_terms.capabilities)) {
    return 'capabilities_not_offered';
  }
  if (counter.offer_id !== offer.offer_id) return 'offer_id_mismatch';
  if (!concernsSameOffer(counter, offer)) return 'counter_differs_from_offer';
  if (offer.offerer_sovereign_id !== known.sovereignId) return 'not_the_offerer';
  if (known.now > instantOf(counter.expires_at)) return 'counter_expired';
  // The agreement will have all of them plus ours.
  if (counter.signatures.length > MAX_SIGNATURES - known.ourSignatures)
    return 'too_many_signatures';
  return isAgreedByAny(counter, known.responderKeys, verify) ? null : 'invalid_counter_signature';
}

/** Builds the agreement from an acceptable counter, with the responder's signature, then ours. */
export function acceptCounter(
  issuer: Issuer,
  counter: CapabilityCounter,
  offer: CapabilityOffer,
): AgreementRecord {
  const { agreed_terms, offerer_evidence, responder_evidence } = counter;
  const { offer_id, offerer_sovereign_id, responder_sovereign_id, graph_digest } = offer;
  const agreed = {
    offer_id,
    offerer_sovereign_id,
    responder_sovereign_id,
    agreed_terms,
    offerer_evidence,
    responder_evidence,
    graph_digest,
  };
  return establish(issuer, agreed, counter.signatures);
}

function agreedMembers(
  offer: CapabilityOffer,
  terms: AgreementTerms,
  responderEvidence: TrustEvidence,
): AgreedMembers {
  return {
    offer_id: offer.offer_id,
    offerer_sovereign_id: offer.offerer_sovereign_id,
    responder_sovereign_id: offer.responder_sovereign_id,
    agreed_terms: terms,
    offerer_evidence: offer.offerer_evidence,
    responder_evidence: responderEvidence,
    graph_digest: offer.graph_digest,
  };
}

function establish(
  issuer: Issuer,
  agreed: AgreedMembers,
  earlier: readonly SignatureItem[],
): AgreementRecord {
  const ours = signaturesOver(agreementText(agreed), keysOf(issuer));
  return {
    agreement_id: issuer.uuid(),
    ...agreed,
    established_at: formatInstant(issuer.now),
    expires_at: agreed.agreed_terms.valid_until,
    signatures: [...earlier, ...ours],
  };
}

function isSubset(capabilities: readonly string[], of: readonly string[]): boolean {
  const offered = new Set(of);
  return capabilities.every((capability) => offered.has(capability));
}

function concernsSameOffer(counter: CapabilityCounter, offer: CapabilityOffer): boolean {
  return (
    counter.offerer_sovereign_id === offer.offerer_sovereign_id &&
    counter.responder_sovereign_id === offer.responder_sovereign_id &&
    counter.graph_digest === offer.graph_digest &&
    canonicalJson(counter.offerer_evidence) === canonicalJson(offer.offerer_evidence)
  );
}

export const AGREEMENT_REASONS = [
  'missing_offerer_signature',
  'invalid_offerer_signature',
  'missing_responder_signature',
  'invalid_responder_signature',
  'accepted',
] as const;
export type AgreementReason = (typeof AGREEMENT_REASONS)[number];

/** Verifies who signed the agreement. Does not check its age or its evidence. */
export function verifyAgreement(
  agreement: AgreementRecord,
  offererKeys: readonly string[],
  responderKeys: readonly string[],
  verify: VerifySignature,
): AgreementReason {
  const { signatures } = agreement;
  if (signatures.length === 0) return 'missing_offerer_signature';
  const text = bytesOfText(agreementText(agreement));
  const check = withinBudget(verify);
  // The offerer signs last when it accepts a counter, so the last signature is tried first.
  const newestFirst = [...signatures].reverse();
  if (!coversText(newestFirst, text, offererKeys, check)) return 'invalid_offerer_signature';
  if (coversText(signatures, text, responderKeys, check)) return 'accepted';
  return signatures.length < 2 ? 'missing_responder_signature' : 'invalid_responder_signature';
}
