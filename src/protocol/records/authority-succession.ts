/** AuthoritySuccession: the root key's statement that another key replaces the authority key [authority-keys-1]. */
import Type, { type Static } from 'typebox';
import type { Sha256, Signer, VerifySignature } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import {
  Datetime,
  instantOf,
  MAX_TEXT_LENGTH,
  nullable,
  recordReader,
  SignatureItem,
} from './record.ts';
import { signatureOver, signedText, soleSigner } from './signed-record.ts';

/** The most statements of one network, and the most that a reader accepts. */
export const MAX_SUCCESSIONS = 256;

export const SUCCESSION_KINDS = ['planned', 'compromise', 'roll_back'] as const;
export type SuccessionKind = (typeof SUCCESSION_KINDS)[number];

const NetworkName = Type.String({ minLength: 1, maxLength: MAX_TEXT_LENGTH });
const PublicKey = Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' });
const Signature = Type.String({ pattern: '^[A-Za-z0-9+/]{86}==$' });

export const AuthoritySuccession = Type.Object({
  succession_id: Type.String({
    pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  }),
  network_name: NetworkName,
  root_public_key: PublicKey,
  sequence: Type.Integer({ minimum: 1, maximum: MAX_SUCCESSIONS }),
  previous_digest: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description:
      'Hex SHA-256 of the previous statement, or, for the first one, of the genesis block',
  }),
  kind: Type.Enum([...SUCCESSION_KINDS]),
  from_key: PublicKey,
  to_key: PublicKey,
  issued_at: Datetime,
  activates_at: Datetime,
  overlap_until: Datetime,
  distrusted_from: nullable(Datetime),
  proof_of_possession: Signature,
  signatures: Type.Array(SignatureItem, { default: [], maxItems: 2 }),
});

export type AuthoritySuccession = Static<typeof AuthoritySuccession>;

export const readAuthoritySuccession = recordReader(AuthoritySuccession);

/** The members that the proof of possession covers; they must be final before anything is signed. */
export type SuccessionTerms = Omit<AuthoritySuccession, 'proof_of_possession' | 'signatures'>;

/**
 * Hex SHA-256 of the statement without its signatures, so that the next statement can refer to it before the root key
 * has signed.
 */
export function successionDigest(statement: AuthoritySuccession, sha256: Sha256): string {
  return sha256.hex(signedText(statement));
}

/** No record begins with this text, so the next key's signature is useless elsewhere. */
export function possessionText(terms: SuccessionTerms, sha256: Sha256): string {
  return `mesh-na authority key 1\n${sha256.hex(canonicalJson(terms))}`;
}

/** The statement with the proof of possession of its next key. */
export function proveSuccession(
  terms: SuccessionTerms,
  next: Signer,
  sha256: Sha256,
): AuthoritySuccession {
  const proof_of_possession = next.sign(possessionText(terms, sha256));
  return { ...terms, proof_of_possession, signatures: [] };
}

/** Adds the signature of the replaced key, for readers that know only that one. */
export function signAsFromKey(statement: AuthoritySuccession, signer: Signer): AuthoritySuccession {
  const signature = signatureOver(signedText(statement), soleSigner(signer));
  return { ...statement, signatures: [signature] };
}

/** Adds the root key's signature, which comes first; a statement that has it needs nothing else. */
export function signAsRoot(statement: AuthoritySuccession, root: Signer): AuthoritySuccession {
  const signature = signatureOver(signedText(statement), soleSigner(root));
  return { ...statement, signatures: [signature, ...statement.signatures] };
}

export function hasOrderedTimes(statement: AuthoritySuccession): boolean {
  const activates = instantOf(statement.activates_at);
  const overlapEnd = instantOf(statement.overlap_until);
  if (instantOf(statement.issued_at) > activates || activates > overlapEnd) return false;
  const { distrusted_from } = statement;
  if (statement.kind !== 'compromise') return distrusted_from === null;
  return (
    distrusted_from !== null && instantOf(distrusted_from) <= activates && activates === overlapEnd
  );
}

export type SignatureVerdict =
  | 'wrong_proof'
  | 'not_signed_by_root'
  | 'not_signed_by_from_key'
  | 'valid';

/**
 * The signatures have a fixed order and are labeled with their keys, so nothing in a statement can be altered
 * unnoticed.
 */
export function judgeSignatures(
  statement: AuthoritySuccession,
  verify: VerifySignature,
  sha256: Sha256,
): SignatureVerdict {
  const { proof_of_possession, signatures, ...terms } = statement;
  const { from_key, to_key, root_public_key, kind } = terms;
  if (!verify(to_key, possessionText(terms, sha256), proof_of_possession)) return 'wrong_proof';
  const text = signedText(statement);
  const isBy = (key: string, item: SignatureItem | undefined) =>
    item !== undefined && item.key_id === key && verify(key, text, item.sig);
  const [byRoot, byFromKey] = signatures;
  if (!isBy(root_public_key, byRoot)) return 'not_signed_by_root';
  // A compromised key must not be required to sign.
  const isRight = kind === 'compromise' ? byFromKey === undefined : isBy(from_key, byFromKey);
  return isRight ? 'valid' : 'not_signed_by_from_key';
}
