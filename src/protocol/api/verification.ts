/**
 * How a public verification is declared [core-4-11], [core-4-13], [trust-6], for the route of an authority and for
 * `verify --offline`. A record that cannot be read is refused; the checks have a fixed order and a reason code each.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { Sha256, VerifySignature } from '../../base/crypto/primitives.ts';
import { areTexts, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { type Fresh, MAX_KEYS } from '../records/record.ts';
import { type CandidateKeys, keyList } from '../records/signed-record.ts';
import { demand, Refusal, type RefusalName } from '../refusals.ts';
import type { RouteDescription } from '../route-description.ts';
import type { BodySent, Operation } from './define.ts';
import type { ReadBody } from './members.ts';
import { demandPresent } from './trust-members.ts';

export interface RevocationQuestion {
  readonly attestation: { readonly id: string; readonly issuer: string } | null;
  readonly treaty: {
    readonly id: string;
    readonly issuer: string;
    /** Keys that the caller says are the issuer's. */
    readonly issuerKeys: readonly string[];
  } | null;
}

/** The only state that a public verification can read. */
export interface RevocationKnowledge {
  readonly attestation_revoked_here: boolean;
  readonly attestation_revoked_by_feed: boolean;
  readonly treaty_revoked: boolean;
  /** Those of the issuer's keys in the question that a treaty in force with it names. */
  readonly treaty_keys: readonly string[];
}

/** The issuer of attestations, whose feed lists its revoked ones. */
export interface FeedIssuer {
  readonly name: string;
  readonly keys: readonly string[];
}

/** The environment of a verification. */
export interface Verifier extends Fresh {
  readonly verify: VerifySignature;
  readonly sha256: Sha256;
  /** Whether an authority is asked: requests have limits beyond the bounds of records, and empty records are missing. */
  readonly isBounded: boolean;
  /** The keys to use if a request names none; throws if they are not known. */
  ownKeys(): readonly string[];
  /** The sovereign whose keys these are; null if it is not known. */
  readonly ownName: string | null;
  /** The recognition policy to use if a request has none; throws if there is none. */
  ownPolicy(): Promise<JsonValue>;
  askRevocations(
    question: RevocationQuestion,
    issuer: FeedIssuer,
  ): RevocationKnowledge | Promise<RevocationKnowledge>;
}

export interface Judged<Verdict> {
  readonly verdict: Verdict;
  readonly logged: JsonObject;
}

/** A verdict with the names of the members to log. */
export function logging<Verdict extends JsonObject>(
  verdict: Verdict,
  ...names: readonly (keyof Verdict & string)[]
): Judged<Verdict> {
  return {
    verdict,
    logged: Object.fromEntries(names.map((name) => [name, verdict[name] ?? null])),
  };
}

interface Terms<Schema extends TObject, Answer extends TSchema>
  extends Pick<RouteDescription, 'description' | 'example' | 'refusals' | 'summary'> {
  readonly body: Schema;
  readonly answer: Answer;
  /** Under which it is logged and counted. */
  readonly event: string;
  /** Throws the refusal of a body that does not fit. */
  judge(body: JsonObject, by: Verifier): Judged<Static<Answer>> | Promise<Judged<Static<Answer>>>;
}

export interface Verification<Schema extends TObject = TObject, Answer extends TSchema = TSchema>
  extends Operation<
      JsonObject,
      BodySent<ReadBody<Schema>>,
      Static<Answer>,
      'public',
      'verification'
    >,
    Pick<Terms<Schema, Answer>, 'event' | 'judge'> {}

/** Of what anyone has received. Nothing is written. */
export function publicVerification<Schema extends TObject, Answer extends TSchema>(
  route: `POST /${string}`,
  terms: Terms<Schema, Answer>,
): Verification<Schema, Answer> {
  return {
    ...terms,
    method: 'POST',
    path: route.slice('POST '.length),
    access: 'public',
    kind: 'verification',
    limit: 'VERIFY',
    keepsAnswer: false,
    read: ({ body }) => ({ ok: true, value: body }),
  };
}

/** Refuses if any of the members is missing in a request to an authority. */
export function demandSent(
  body: JsonObject,
  names: readonly string[],
  { isBounded }: Verifier,
  refusal: RefusalName,
): void {
  if (isBounded) demandPresent(body, names, refusal);
}

/** The keys in a request. Absent or null means our own keys; an empty list accepts nothing [trust-1-5]. */
export function keysOf(
  given: JsonValue | undefined,
  by: Verifier,
  refusal: RefusalName,
): readonly string[] {
  if (given === undefined || given === null) return by.ownKeys();
  demand(isList(given) && areTexts(given), refusal, 'invalid_keys');
  demandAtMost(MAX_KEYS, given.length, by, refusal, 'too_many_keys');
  return given;
}

/** Like `keysOf`, but the keys may have ids. */
export function keysOfAnyForm(given: JsonValue | undefined, by: Verifier): CandidateKeys {
  if (given === undefined || given === null) return by.ownKeys();
  const keys = keyList(given);
  if (keys === null) throw new Refusal('invalid_public_keys');
  return keys;
}

export function demandAtMost(
  most: number,
  count: number,
  { isBounded }: Verifier,
  refusal: RefusalName,
  cause: string,
): void {
  demand(!isBounded || count <= most, refusal, cause);
}
