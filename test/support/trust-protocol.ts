/**
 * The trust protocol from the side of another sovereign: genuine offers, counters, agreements, decisions and evidence,
 * with any member changed before they are signed. Signed texts are computed independently of the program. Instants are
 * milliseconds since the epoch.
 */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { signerFromSeed, verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { readKeyFile } from '../../src/base/keys/key-file.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { TestAuthority } from './authority.ts';
import { HOUR, SECOND } from './clock.ts';
import { misspelledKeys, WEAK_KEYS } from './hostile.ts';
import { newKey, outcome, type Received } from './requests.ts';
import { freshId, parsed, recognize, signedBy } from './trust.ts';

/** A signer of records: a `Sovereign`, or the authority itself. */
export interface Party {
  readonly name: string;
  readonly key: Signer;
}

/** The authority under test, with the key from its folder: for records that it would not build itself. */
export function ourselves(na: TestAuthority, name = 'alpha'): Party {
  return { name, key: signerFromSeed(readKeyFile(join(na.dataDir, 'keys', 'na.key'))) };
}

/** Makes the authority recognize the party, with the party's key unless `terms` has another. */
export async function recognized(
  na: TestAuthority,
  { name, key }: Party,
  terms: JsonObject = {},
): Promise<JsonObject> {
  const answer = await recognize(na, {
    subject_sovereign_id: name,
    subject_public_keys: [key.publicKey],
    ...terms,
  });
  assert.equal(answer.status, 200, answer.text);
  return parsed(answer);
}

/** The record of an operator route's answer, which must be 201. */
export async function created(answer: Received | Promise<Received>): Promise<JsonObject> {
  const received = await answer;
  assert.equal(outcome(received), '201', received.text);
  return parsed(received);
}

/** Outcome and finer cause of a refusal, such as `422 accept_rejected offer_expired`. */
export function outcomeWithCause(answer: Received): string {
  const cause: unknown = answer.body?.error?.details?.cause;
  return cause === undefined ? outcome(answer) : `${outcome(answer)} ${cause}`;
}

/** A member of a record that is an object. */
export function inner(record: JsonObject, member: string): JsonObject {
  return record[member] as JsonObject;
}

/** The signatures of a record in list form. */
export function signaturesOf(record: JsonObject): { key_id: string; sig: string }[] {
  return record.signatures as unknown as { key_id: string; sig: string }[];
}

// Signing

/** Signs over the canonical text of all members but `signatures`, replacing earlier signatures. */
export function resigned(record: JsonObject, ...signers: readonly Signer[]): JsonObject {
  return signedBy(record, ...signers);
}

/** Signs in single form over the canonical text of all members but `signature`. */
export function singlySigned(record: JsonObject, signer: Signer, keyId?: string): JsonObject {
  const sig = signer.sign(canonicalJson(record, 'signature'));
  return { ...record, signature: { key_id: keyId ?? signer.publicKey, sig } };
}

/** Whether the one signature of a record in single form verifies. */
export function singlyVerifies(record: JsonObject, publicKey: string): boolean {
  const { sig } = inner(record, 'signature');
  return verifySignature(publicKey, canonicalJson(record, 'signature'), String(sig));
}

const AGREED_MEMBERS = [
  'agreed_terms',
  'graph_digest',
  'offer_id',
  'offerer_evidence',
  'offerer_sovereign_id',
  'responder_evidence',
  'responder_sovereign_id',
] as const;

/** The text that a signature on a counter or an agreement covers [trust-2-5]. */
export function agreedText(record: JsonObject): string {
  return canonicalJson(
    Object.fromEntries(AGREED_MEMBERS.map((name) => [name, record[name] as JsonValue])),
  );
}

/** Signs a counter or agreement over its seven members, replacing earlier signatures. */
export function signedAgreement(record: JsonObject, ...signers: readonly Signer[]): JsonObject {
  const text = agreedText(record);
  const signatures = signers.map((key) => ({ key_id: key.publicKey, sig: key.sign(text) }));
  return { ...record, signatures };
}

/** For each signature of a counter or agreement, the key under which it verifies; null if there is none. */
export function agreementSigners(
  record: JsonObject,
  ...publicKeys: readonly string[]
): (string | null)[] {
  const text = agreedText(record);
  return signaturesOf(record).map(
    ({ sig }) => publicKeys.find((key) => verifySignature(key, text, sig)) ?? null,
  );
}

// Records, created a second ago. Every optional member is set, and none to its default.

/** Evidence of `issuer` about its trust in `target`. */
export function evidence(
  issuer: Party,
  target: Party,
  now: number,
  changes: JsonObject = {},
): JsonObject {
  const record = {
    evidence_id: freshId('evidence'),
    issuer_sovereign_id: issuer.name,
    source_sovereign_id: issuer.name,
    target_sovereign_id: target.name,
    verdict: 'allow',
    reason: 'active_treaty_path',
    requested_roles: ['role:client'],
    trusted: true,
    hop_count: 1,
    signals: [{ code: 'active_treaty_path', severity: 'info', detail: 'seen' }],
    graph_digest: 'ab'.repeat(32),
    evaluated_at: '2026-01-15T12:00:00+00:00',
    issued_at: formatInstant(now - SECOND),
    issued_by: issuer.key.publicKey,
    metadata: { weight: new JsonFloat(1), kept: ['\u00e9'] },
    ...changes,
  };
  return resigned(record, issuer.key);
}

/** Terms that are valid from now for an hour. */
export function agreedTerms(now: number, changes: JsonObject = {}): JsonObject {
  return {
    capabilities: ['read', 'write'],
    scope: {
      region: 'eu-west',
      ratio: new JsonFloat(1),
      whole: 1,
      place: 'Zürich \u2028 \ud83d\ude80',
    },
    valid_from: formatInstant(now),
    valid_until: formatInstant(now + HOUR),
    freshness_commitment: 3,
    ...changes,
  };
}

/** An offer of `offerer`, open for a minute, signed by it. */
export function offerBetween(
  offerer: Party,
  responder: Party,
  now: number,
  changes: JsonObject = {},
): JsonObject {
  const record = {
    offer_id: freshId('offer'),
    offerer_sovereign_id: offerer.name,
    responder_sovereign_id: responder.name,
    requested_terms: agreedTerms(now),
    graph_digest: 'cd'.repeat(32),
    offerer_evidence: evidence(offerer, responder, now),
    expires_at: formatInstant(now + 60 * SECOND),
    created_at: formatInstant(now - SECOND),
    ...changes,
  };
  return resigned(record, offerer.key);
}

/** A counter to the offer, signed by `responder`. */
export function counterTo(
  offer: JsonObject,
  responder: Party,
  now: number,
  changes: JsonObject = {},
): JsonObject {
  const record = {
    offer_id: offer.offer_id as string,
    offerer_sovereign_id: offer.offerer_sovereign_id as string,
    responder_sovereign_id: offer.responder_sovereign_id as string,
    agreed_terms: agreedTerms(now, { capabilities: ['read'] }),
    offerer_evidence: inner(offer, 'offerer_evidence'),
    responder_evidence: evidence(responder, responder, now),
    graph_digest: offer.graph_digest as string,
    expires_at: offer.expires_at as string,
    ...changes,
  };
  return signedAgreement(record, responder.key);
}

/** An agreement signed by the responder, then the offerer, or by `signers` alone. */
export function agreementBetween(
  offerer: Party,
  responder: Party,
  now: number,
  changes: JsonObject = {},
  signers: readonly Signer[] = [responder.key, offerer.key],
): JsonObject {
  const record = {
    agreement_id: freshId('agreement'),
    offer_id: freshId('offer'),
    offerer_sovereign_id: offerer.name,
    responder_sovereign_id: responder.name,
    agreed_terms: agreedTerms(now),
    offerer_evidence: evidence(offerer, responder, now),
    responder_evidence: evidence(responder, offerer, now),
    graph_digest: 'cd'.repeat(32),
    established_at: formatInstant(now - SECOND),
    expires_at: formatInstant(now + HOUR),
    ...changes,
  };
  return signedAgreement(record, ...signers);
}

/** A freshness proof in single form, as decisions may carry one. */
export function freshnessProof(issuer: Party, now: number, changes: JsonObject = {}): JsonObject {
  const record = {
    proof_id: freshId('freshness'),
    feed_sovereign_id: issuer.name,
    feed_sequence: 7,
    feed_digest: 'ef'.repeat(32),
    attested_at: formatInstant(now - SECOND),
    proof_valid_until: formatInstant(now + HOUR),
    issuer_sovereign_id: issuer.name,
    ...changes,
  };
  return singlySigned(record, issuer.key);
}

/** A decision that authorizes, valid for five minutes, signed by `operator`. */
export function decisionBy(operator: Party, now: number, changes: JsonObject = {}): JsonObject {
  const record = {
    decision_id: freshId('decision'),
    context_id: freshId('context'),
    agreement_id: freshId('agreement'),
    authorized: true,
    denial_reason: null,
    gate_results: [
      { gate_name: 'capability_check', passed: true, detail: 'an agreed capability' },
      { gate_name: 'validity_window', passed: true, detail: 'within the window' },
      { gate_name: 'freshness_check', passed: true, detail: 'fresh' },
    ],
    decision_made_at: formatInstant(now - SECOND),
    decision_valid_until: formatInstant(now + 300 * SECOND),
    operator_sovereign_id: operator.name,
    freshness_proof: freshnessProof(operator, now),
    ...changes,
  };
  return singlySigned(record, operator.key);
}

// Hostile values

/** Values that count as a missing member of a request [trust-1-1]. */
export const MISSING: readonly (readonly [string, JsonValue])[] = [
  ['null', null],
  ['false', false],
  ['0', 0],
  ['0.0', new JsonFloat(0)],
  ['-0.0', new JsonFloat(-0)],
  ['""', ''],
  ['[]', []],
  ['{}', {}],
];

/** The body without the member. */
export function without(record: JsonObject, member: string): JsonObject {
  const { [member]: _gone, ...rest } = record;
  return rest;
}

/** Alternating lists and objects, nested this deep. */
export function nested(depth: number): JsonValue {
  let value: JsonValue = 'core';
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { in: value };
  return value;
}

const HOSTILE: readonly (readonly [string, JsonValue])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
  ['5', 5],
  ['-1', -1],
  ['7.5', new JsonFloat(7.5)],
  ['1e300', new JsonFloat(1e300)],
  ['an integer of 70 bits', 2n ** 70n],
  ['an empty string', ''],
  ['a string', 'text'],
  ['a string of 20000 characters', 'x'.repeat(20_000)],
  ['an empty list', []],
  ['a list of null', [null]],
  ['a list of strings', ['text']],
  ['an empty object', {}],
  ['an object', { text: 'text' }],
  ['lists and objects 50 deep', nested(50)],
];

export interface Mutation {
  readonly name: string;
  /** Where the record was changed, such as `agreed_terms.capabilities.0`. */
  readonly path: string;
  readonly record: JsonObject;
}

/**
 * The record with each member at every level replaced by each hostile value, and left out; members whose
 * path `except` matches are left alone.
 */
export function mutationsOf(record: JsonObject, except = /^$/): Mutation[] {
  const original = canonicalJson(record);
  return pathsOf(record)
    .filter((path) => !except.test(path.join('.')))
    .flatMap((path) => [
      { name: `${path.join('.')} left out`, path, changed: changedAt(record, path, undefined) },
      ...HOSTILE.map(([name, value]) => ({
        name: `${path.join('.')} is ${name}`,
        path,
        changed: changedAt(record, path, value),
      })),
    ])
    .map(({ name, path, changed }) => ({
      name,
      path: path.join('.'),
      record: changed as JsonObject,
    }))
    .filter(({ record: changed }) => canonicalJson(changed) !== original);
}

function pathsOf(value: JsonValue): string[][] {
  if (typeof value !== 'object' || value === null || value instanceof JsonFloat) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    [name],
    ...pathsOf(member as JsonValue).map((rest) => [name, ...rest]),
  ]);
}

/** `undefined` leaves the member out. */
function changedAt(
  value: JsonValue,
  [name = '', ...rest]: readonly string[],
  replacement: JsonValue | undefined,
): JsonValue {
  const entries = Object.entries(value as JsonObject).flatMap(([key, member]) => {
    if (key !== name) return [[key, member]] as [string, JsonValue][];
    const changed = rest.length === 0 ? replacement : changedAt(member, rest, replacement);
    return changed === undefined ? [] : ([[key, changed]] as [string, JsonValue][]);
  });
  if (Array.isArray(value)) return entries.map(([, member]) => member);
  return Object.fromEntries(entries);
}

/** Runs the work over all items, some concurrently, so that a long table is fast. */
export async function eachOf<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  atOnce = 16,
): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Key lists of a verification, with the outcome for a record that `right` has signed [trust-1-5]. */
export function keyListCases(
  right: Signer,
): (readonly [string, JsonValue, 'verifies' | 'fails' | 'malformed'])[] {
  const key = right.publicKey;
  const others = Array.from({ length: 31 }, () => newKey().publicKey);
  return [
    ['the key', [key], 'verifies'],
    ['the key twice', [key, key], 'verifies'],
    ['another key, then the key', [newKey().publicKey, key], 'verifies'],
    ['an unusable key, then the key', ['not a key', key], 'verifies'],
    ['a weak key, then the key', [WEAK_KEYS[0] ?? '', key], 'verifies'],
    ['32 keys, the right one last', [...others, key], 'verifies'],
    ['33 keys', [...others, newKey().publicKey, key], 'malformed'],
    ['no key', [], 'fails'],
    ['another key', [newKey().publicKey], 'fails'],
    ['an empty string', [''], 'fails'],
    ...misspelledKeys(key).map(
      ([name, text]) => [`the key ${name}`, [text], 'fails'] as [string, JsonValue, 'fails'],
    ),
    ...WEAK_KEYS.map(
      (weak) => [`the weak key ${weak}`, [weak], 'fails'] as [string, JsonValue, 'fails'],
    ),
    ['the bare key', key, 'malformed'],
    ['an empty string for the list', '', 'malformed'],
    ['an object of the key', { label: key }, 'malformed'],
    ['an empty object', {}, 'malformed'],
    ['true', true, 'malformed'],
    ['false', false, 'malformed'],
    ['0', 0, 'malformed'],
    ['7', 7, 'malformed'],
    ['1.5', new JsonFloat(1.5), 'malformed'],
    ['the key and null', [key, null], 'malformed'],
    ['the key and a number', [key, 5], 'malformed'],
    ['the key in a list', [[key]], 'malformed'],
    ['the key in an object', [{ key }], 'malformed'],
  ];
}

/** Every fault alone, every adjacent pair, and each fault with all later ones. */
export function combinationsOf<Name extends string>(
  faults: readonly Name[],
): { readonly first: Name; readonly names: readonly Name[] }[] {
  return faults.flatMap((first, index) => {
    const later = faults.slice(index + 1);
    const sets: Name[][] = [[first]];
    if (later[0] !== undefined) sets.push([first, later[0]]);
    if (later.length > 1) sets.push([first, ...later]);
    return sets.map((names) => ({ first, names }));
  });
}

/** A change of a body before it is sent. */
export type Change = (body: JsonObject) => JsonObject;

export function set(changes: JsonObject): Change {
  return (body) => ({ ...body, ...changes });
}

export function drop(...members: readonly string[]): Change {
  return (body) => members.reduce(without, body);
}
