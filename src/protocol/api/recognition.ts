/** The recognition policy, and the revocation feeds of other sovereigns [core-4-12], [core-4-14]. */
import Type from 'typebox';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { FeedImported, RecognitionPolicySaved } from '../answers/recognition.ts';
import { readRecognitionPolicy as policyIn, RecognitionPolicy } from '../records/recognition.ts';
import { MAX_TEXT_LENGTH } from '../records/record.ts';
import {
  readRevocationFeed as feedIn,
  SovereignRevocationFeed,
} from '../records/revocation-feed.ts';
import { keyList } from '../records/signed-record.ts';
import { Refusal, refuse } from '../refusals.ts';
import { LARGE_BODY_BYTES } from '../route-description.ts';
import { privilegedCommand, publicDocument, publicQuery } from './define.ts';
import { KeysOfAnyForm, type ReadContext, readBy } from './members.ts';
import { text } from './parameters.ts';

const MAX_POLICY_ID_LENGTH = 256;
/** Of what the recognition graph repeats for each id of an imported feed. */
const MAX_REPEATED_LENGTH = 256;

export const setRecognitionPolicy = privilegedCommand('POST /admin/recognition-policy', {
  summary: 'Set the acceptance policy',
  description: 'A body that is itself a policy, without the wrapper, is taken too.',
  body: readBy(
    Type.Object({
      recognition_policy: RecognitionPolicy,
      policy_id: Type.Optional(
        Type.Union([Type.String({ maxLength: MAX_POLICY_ID_LENGTH }), Type.Null()]),
      ),
    }),
    ['missing_recognition_policy', 'invalid_recognition_policy', 'invalid_keys_of_others'],
    readPolicy,
  ),
  answer: RecognitionPolicySaved,
  refusals: ['private_key_given'],
});

export const readRecognitionPolicy = publicQuery('GET /recognition-policy', {
  summary: 'Current acceptance policy',
  answer: RecognitionPolicy,
  refusals: ['recognition_policy_not_configured'],
});

export const readRevocationFeed = publicDocument('GET /sovereign-revocation-feed', {
  growsWithNetwork: true,
  hasLastCopy: true,
  summary: 'Signed feed of the attestations revoked here',
  query: {
    issuer_sovereign_id: text('Issuer of the attestations; this sovereign when absent'),
  },
  answer: SovereignRevocationFeed,
  refusals: ['feed_issuer_mismatch'],
});

export const importFeed = privilegedCommand('POST /admin/sovereign-revocation-feeds/import', {
  maxBodyBytes: LARGE_BODY_BYTES,
  summary: "Import another sovereign's revocation feed",
  description:
    'Without issuer_public_keys the subject keys of active treaties with the issuer are used.',
  body: readBy(
    Type.Object({
      feed: SovereignRevocationFeed,
      issuer_public_keys: KeysOfAnyForm,
      expected_issuer_sovereign_id: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    }),
    ['invalid_sovereign_revocation_feed'],
    readImport,
  ),
  exampleNeeds: {
    what: 'a feed that its issuer signed, with a key of the issuer',
    otherwise: 'invalid_feed_signature',
  },
  answer: FeedImported,
  refusals: [
    'private_key_given',
    'missing_issuer_public_keys',
    'wrong_issuer',
    'missing_feed_signature',
    'invalid_feed_signature',
    'stale_sequence',
  ],
});

function readPolicy(body: JsonObject) {
  const wrapped = body.recognition_policy ?? null;
  const given = wrapped === null && 'local_sovereign_id' in body ? body : wrapped;
  if (given === null) refuse('missing_recognition_policy');
  const policy = policyIn(given) ?? refuse('invalid_recognition_policy');
  const keys = policy.recognized_issuers.flatMap(({ public_keys }) => public_keys);
  if (!keys.every(isPublicKey)) refuse('invalid_keys_of_others');
  const policyId = textOf(body, 'policy_id', MAX_POLICY_ID_LENGTH);
  return { recognition_policy: policy, policy_id: policyId === '' ? null : policyId };
}

function readImport(body: JsonObject, { maxFeedEntries }: ReadContext) {
  const feed = entriesOf(body.feed) > maxFeedEntries ? null : feedIn(body.feed);
  if (feed === null || repeatsTooMuch(feed)) refuse('invalid_sovereign_revocation_feed');
  const given = body.issuer_public_keys ?? null;
  return {
    feed,
    expected_issuer_sovereign_id: textOf(body, 'expected_issuer_sovereign_id'),
    /** Null for the keys of active treaties; a wrong type counts as an empty list, which the authority refuses. */
    issuer_public_keys: given === null ? null : (keyList(given) ?? []),
  };
}

function repeatsTooMuch({
  feed_id,
  issuer_sovereign_id: issuer,
  sequence,
}: SovereignRevocationFeed): boolean {
  const longest = Math.max(feed_id.length, String(sequence).length);
  return longest > MAX_REPEATED_LENGTH || issuer.length > MAX_TEXT_LENGTH;
}

/** The number of ids in a feed, including duplicates. */
function entriesOf(feed: JsonValue | undefined): number {
  const ids = isJsonObject(feed) ? feed.revoked_attestation_ids : null;
  return Array.isArray(ids) ? ids.length : 0;
}

/** A text, or null if it is absent or null. */
function textOf(body: JsonObject, member: string, maxLength?: number): string | null {
  const text = body[member] ?? null;
  if (text === null) return null;
  if (typeof text === 'string' && [...text].length <= (maxLength ?? text.length)) return text;
  const msg =
    maxLength === undefined ? 'must be a string' : `must be a string of at most ${maxLength}`;
  const errors = [{ loc: ['body', member], msg, type: 'type' }];
  throw new Refusal('request_validation_failed', { errors });
}
