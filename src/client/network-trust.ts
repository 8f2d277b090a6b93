/**
 * What a node requires of its network's documents [core-5-2] [core-5-3] [core-5-5]: the pinned root key or its delegate
 * signed them, they are current, and none rolls back an earlier one. Each check returns the reason to reject the
 * document, or null.
 */

import type { VerifySignature } from '../base/crypto/primitives.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { AuthorityKey } from '../protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { JoinCertificate } from '../protocol/records/join-certificate.ts';
import { instantOf } from '../protocol/records/record.ts';
import type { CertificateRevocationList } from '../protocol/records/revocation-list.ts';
import { type SignedRecord, signedText } from '../protocol/records/signed-record.ts';
import type { Authority } from './authority-signers.ts';
import { verifyText } from './keys.ts';
import { CLOCK_TOLERANCE_MS, createVerifier } from './offline.ts';

/** What a node already knows about its network. */
export interface Pin {
  readonly rootKey: string;
  readonly genesis: GenesisBlock | null;
}

const GENESIS_PROBLEMS = {
  valid: null,
  malformed: 'it is malformed',
  wrong_root: 'it belongs to another root key',
  invalid_signature: 'the root key did not sign it',
} as const;

export const CERTIFICATE_PROBLEMS = {
  valid: null,
  malformed: 'it is malformed',
  wrong_key: 'it is for another key',
  wrong_network: 'it names another network',
  invalid_signature: 'no signature verifies under the key of the genesis',
  not_yet_valid: 'it is not valid yet',
  expired: 'it has expired',
  revoked: 'it is revoked',
} as const;

const LIST_PROBLEMS = {
  valid: null,
  malformed: 'it is malformed',
  invalid_signature: 'the authority of the genesis did not sign it',
  not_yet_valid: 'it is dated ahead of this clock',
  stale: 'it is out of date',
} as const;

export const DELTA_PROBLEMS = {
  ...LIST_PROBLEMS,
  other_base: 'it does not continue the stored list',
  wrong_digest: 'the resulting list does not match its digest',
} as const;

/** `now` is in milliseconds since the epoch. */
export function genesisProblem(
  genesis: GenesisBlock,
  { rootKey, genesis: held }: Pin,
  now: number,
  verify: VerifySignature = verifyText,
): string | null {
  const unsigned = GENESIS_PROBLEMS[createVerifier({ verify }).genesis(genesis, rootKey)];
  return unsigned ?? changeProblem(genesis, held) ?? delegationProblem(genesis, now);
}

type Delegation = GenesisBlock['network_authority'];

/** The root key may replace the authority key, but an old genesis must not bring an old key back. */
function changeProblem(genesis: GenesisBlock, held: GenesisBlock | null): string | null {
  if (held === null) return null;
  if (genesis.network_name !== held.network_name) return 'it belongs to another network';
  const [delegation, heldDelegation] = [genesis.network_authority, held.network_authority];
  if (canonicalJson(delegation) === canonicalJson(heldDelegation)) return null;
  return isNewer(delegation, heldDelegation) ? null : 'it is older than the stored one';
}

/** Newer means that it begins later or, if the root key extended it for the same key, ends later. */
function isNewer(offered: Delegation, held: Delegation): boolean {
  const begins = instantOf(offered.valid_from) - instantOf(held.valid_from);
  if (begins !== 0) return begins > 0;
  return (
    offered.public_key === held.public_key && instantOf(offered.valid_to) > instantOf(held.valid_to)
  );
}

function delegationProblem({ network_authority }: GenesisBlock, now: number): string | null {
  const { valid_from, valid_to } = network_authority;
  if (now + CLOCK_TOLERANCE_MS < instantOf(valid_from)) {
    const clock = new Date(now).toISOString();
    return `its authority key is not valid before ${valid_from}, and the clock of this machine says ${clock}: correct the clock if it is wrong`;
  }
  return now > instantOf(valid_to) ? `its authority key was valid until ${valid_to}` : null;
}

/** The verifier's reason, such as `expired`. Revocation is checked against the list instead. */
export function certificateReason(
  certificate: JoinCertificate,
  expected: {
    readonly genesis: GenesisBlock;
    readonly authority?: Authority;
    readonly publicKey: string;
  },
  now: number,
  verify: VerifySignature = verifyText,
) {
  const reason = createVerifier({ verify, now: () => now }).certificate(certificate, expected);
  if (reason !== 'not_yet_valid') return reason;
  // The authority's clock may be ahead: a certificate issued just now must not be discarded.
  const later = now + CLOCK_TOLERANCE_MS;
  return createVerifier({ verify, now: () => later }).certificate(certificate, expected);
}

export function revocationListProblem(
  crl: CertificateRevocationList,
  {
    authority,
    held,
  }: { readonly authority: Authority; readonly held: CertificateRevocationList | null },
  now: number,
  verify: VerifySignature = verifyText,
): string | null {
  const verifier = createVerifier({ verify, now: () => now });
  return LIST_PROBLEMS[verifier.revocationList(crl, authority)] ?? retreatProblem(crl, held);
}

/**
 * Whether, of all keys of the authority, only distrusted ones signed a stored record. Such a record must not hold back
 * what the authority signs now, as an older or different one.
 */
export function isDistrusted(
  record: SignedRecord,
  keys: readonly Pick<AuthorityKey, 'public_key' | 'state'>[],
  verify: VerifySignature = verifyText,
): boolean {
  if (keys.every(({ state }) => state !== 'distrusted')) return false;
  const text = signedText(record);
  const signers = keys.filter(({ public_key }) =>
    record.signatures.slice(0, 2).some(({ sig }) => verify(public_key, text, sig)),
  );
  return signers.length > 0 && signers.every(({ state }) => state === 'distrusted');
}

/** Sequences only increase, each sequence has one content, and entries are never dropped. */
function retreatProblem(
  crl: CertificateRevocationList,
  held: CertificateRevocationList | null,
): string | null {
  if (held === null) return null;
  const sequences = `sequence ${crl.sequence}, stored ${held.sequence}`;
  if (crl.sequence < held.sequence) return `it is older than the stored one (${sequences})`;
  if (crl.sequence === held.sequence && signedText(crl) !== signedText(held)) {
    return `it differs from the stored one with the same sequence ${crl.sequence}`;
  }
  const listed = new Set(crl.revoked_certificates.map(({ certificate_id }) => certificate_id));
  const isWhole = held.revoked_certificates.every(({ certificate_id }) =>
    listed.has(certificate_id),
  );
  return isWhole ? null : `it lacks revocations of the stored one (${sequences})`;
}
