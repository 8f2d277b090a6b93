/** The golden vectors of the trust protocol: keys, cases, and the authority they were made for. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { parseJson } from '../../src/base/json/parse.ts';
import {
  isJsonObject,
  type JsonFloat,
  type JsonObject,
  type JsonValue,
} from '../../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { TestAuthority } from './authority.ts';
import { SECOND, testClock } from './clock.ts';
import { makeNetworkFolder } from './folders.ts';
import { PROJECT } from './project.ts';
import { auditEvents, operate, outcome, type Received, send } from './requests.ts';
import { startUnlimited, UUID } from './trust.ts';

export interface GoldenRecord {
  readonly record: JsonObject;
  /** Null for unsigned records. */
  readonly canonical: string | null;
  readonly canonical_sha256?: string;
  readonly excluded_from_canonical?: readonly string[];
  /** Names of keys, in the order of the signatures. */
  readonly signed_by?: readonly string[] | null;
  readonly derived?: JsonObject;
}

interface GoldenTree {
  readonly capabilities: readonly string[];
  readonly sorted: readonly string[];
  readonly leaf_hashes: readonly string[];
  readonly levels: readonly (readonly string[])[];
  readonly root: string;
  readonly capability_count: number;
  readonly expected_path_length: number;
  readonly proofs: readonly {
    readonly capability: string;
    readonly leaf_hash: string;
    readonly merkle_path: readonly { readonly sibling_hash: string; readonly is_left: boolean }[];
  }[];
}

interface GoldenCascade {
  readonly name: string;
  readonly votes: readonly {
    readonly validator_sovereign_id: string;
    readonly vote: boolean;
    readonly voted_at: string;
    readonly context_digest: string | null;
  }[];
  readonly context_divergence_score: JsonFloat;
  readonly temporal_clustering_score: JsonFloat;
  readonly cascade_score: JsonFloat;
  readonly approve_vote_count: number;
  readonly unique_context_count: number;
  readonly blocked: boolean;
}

interface Expected {
  readonly status: number;
  readonly body?: JsonValue;
}

interface GivenCase extends Expected {
  readonly name: string;
  readonly authenticated?: boolean;
  readonly request?: JsonObject;
  readonly raw_body?: string;
  readonly conforms: 'both' | 'existing_only' | 'ours';
  readonly expected_by_spec?: Expected & { readonly override?: JsonObject };
}

interface Golden {
  readonly meta: { readonly clock: string; readonly network_name: string };
  readonly keys: {
    readonly [name: string]: {
      readonly seed_hex: string;
      readonly seed_base64: string;
      readonly public_base64: string;
    };
  };
  readonly records: { readonly [type: string]: readonly GoldenRecord[] };
  readonly canonical_json: readonly {
    readonly json_text: string;
    readonly canonical: string;
    readonly sha256: string;
    readonly ours?: string;
  }[];
  readonly datetime_normalisation: {
    readonly cases: readonly {
      readonly input: JsonValue;
      readonly canonical?: string;
      readonly ours_valid: boolean;
    }[];
  };
  readonly request_timestamps: {
    readonly cases: readonly { readonly input: string; readonly ours: string }[];
  };
  readonly merkle: { readonly pad_leaf: string; readonly cases: readonly GoldenTree[] };
  readonly cascade: {
    readonly threshold: JsonFloat;
    readonly tolerance: JsonFloat;
    readonly cases: readonly GoldenCascade[];
  };
  readonly verify: { readonly [endpoint: string]: readonly GivenCase[] };
  readonly build: { readonly [endpoint: string]: readonly GivenCase[] };
  readonly audit_event_detail_keys: { readonly [event: string]: readonly string[] };
}

const source = readFileSync(new URL('test/vectors/golden-trust.json', PROJECT), 'utf8');
export const GOLDEN = parseJson(source) as unknown as Golden;

/** The audit event of a successful request; proving has none. */
export const EVENTS: { readonly [endpoint: string]: string } = {
  '/agreements/verify': 'agreement_verified',
  '/boundary/verify': 'boundary_decision_verified',
  '/trust-evidence/verify': 'trust_evidence_verified',
  '/disclosure/verify': 'capability_proof_verified',
  '/consensus/verify': 'consensus_proof_verified',
  '/data-usage/verify': 'data_access_intent_verified',
  '/recognition-treaties/verify': 'recognition_treaty_verified',
  '/attestations/verify': 'membership_attestation_verified',
  '/attestations/verify-with-treaty': 'treaty_attestation_verified',
  '/admin/agreements/offer': 'capability_offer_built',
  '/admin/agreements/counter': 'capability_counter_built',
  '/admin/agreements/accept': 'agreement_accepted',
  '/admin/boundary/decide': 'boundary_decision_made',
  '/admin/trust-evidence': 'trust_evidence_built',
  '/admin/disclosure/commit': 'capability_commitment_created',
  '/admin/disclosure/nullifier': 'capability_nullifier_issued',
  '/admin/consensus/vote': 'validator_vote_cast',
  '/admin/consensus/proof': 'consensus_proof_assembled',
  '/admin/data-usage/policy': 'data_license_policy_created',
  '/admin/data-usage/intent': 'data_access_intent_created',
  '/admin/recognition-treaties': 'recognition_treaty_issued',
};

/** Only logged: the data from which the digest in the proof was computed [trust-3-5]. */
const ASSESSED = 'consensus_cascade_assessed';

/** Members that the contract names but the vectors do not [core-2-3], [core-4-13]. */
const RULED_MEMBERS: { readonly [event: string]: readonly string[] } = {
  admin_auth_failed: ['scope'],
  treaty_attestation_verified: ['subject_sovereign_id'],
};

/** The same of answers, with their value in every case of the vectors, all of whose treaties are our own [core-4-13]. */
const RULED_ANSWERS: { readonly [endpoint: string]: JsonObject } = {
  '/recognition-treaties/verify': { trust_basis: 'own_key' },
  '/attestations/verify-with-treaty': { trust_basis: 'own_key' },
};

/** Names of the details of an audit event, sorted. */
export function detailNames(event: string): string[] {
  const names = GOLDEN.audit_event_detail_keys[event];
  assert.ok(names !== undefined, `the vectors do not know ${event}`);
  return [...names, ...(RULED_MEMBERS[event] ?? [])].sort();
}

/** The golden key of this name. */
export function goldenKey(name: string): Signer {
  const key = GOLDEN.keys[name];
  assert.ok(key !== undefined, `no key is named ${name}`);
  return signerFromSeed(Buffer.from(key.seed_hex, 'hex'));
}

/** A case with the answer that this authority must give. */
export interface GoldenCase {
  readonly endpoint: string;
  readonly name: string;
  readonly request: JsonObject;
  /** The text to send instead of `request`; null to send `request` itself. */
  readonly rawBody: string | null;
  readonly isAuthenticated: boolean;
  readonly status: number;
  readonly body: JsonValue;
}

/** The cases of one endpoint, or of all of the section. */
export function casesOf(section: 'verify' | 'build', endpoint?: string): GoldenCase[] {
  const endpoints = endpoint === undefined ? Object.keys(GOLDEN[section]) : [endpoint];
  return endpoints.flatMap((name) =>
    (GOLDEN[section][name] ?? []).map((given) => caseOf(name, given)),
  );
}

export function caseNamed(section: 'verify' | 'build', endpoint: string, name: string): GoldenCase {
  const found = casesOf(section, endpoint).find((golden) => golden.name === name);
  assert.ok(found !== undefined, `${endpoint} has no case ${name}`);
  return found;
}

function caseOf(endpoint: string, given: GivenCase): GoldenCase {
  const { status, body } = expectedOf(given);
  return {
    endpoint,
    name: given.name,
    request: given.request ?? {},
    rawBody: given.raw_body ?? null,
    isAuthenticated: given.authenticated ?? false,
    status,
    body:
      status === 200 && isJsonObject(body)
        ? { ...body, ...RULED_ANSWERS[endpoint] }
        : (body ?? null),
  };
}

/** If the vectors have two answers, returns the one that the contract requires. */
function expectedOf({ conforms, status, body, expected_by_spec: ruled }: GivenCase): Expected {
  assert.equal(ruled !== undefined, conforms === 'existing_only');
  if (ruled === undefined) return { status, ...(body === undefined ? {} : { body }) };
  if (ruled.override === undefined) return ruled;
  return { status: ruled.status, body: { ...(body as JsonObject), ...ruled.override } };
}

/** The authority of the vectors: their network name, keys and clock. */
export async function startGolden(): Promise<TestAuthority> {
  const now = Date.parse(GOLDEN.meta.clock);
  const [na = '', op = ''] = ['na', 'op'].map((name) => GOLDEN.keys[name]?.seed_hex);
  const seeds = [randomBytes(32), Buffer.from(na, 'hex'), Buffer.from(op, 'hex')];
  const randomSeed = () => seeds.shift() ?? randomBytes(32);
  const { folder } = makeNetworkFolder(GOLDEN.meta.network_name, { now, randomSeed });
  const authority = await startUnlimited({ dataDir: folder, clock: testClock(now) });
  return {
    ...authority,
    async [Symbol.asyncDispose]() {
      await authority.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends the case, signed by the operator if it is authenticated. */
function ask(na: TestAuthority, golden: GoldenCase): Promise<Received> {
  const { endpoint, request, rawBody, isAuthenticated } = golden;
  if (isAuthenticated) return operate(na, endpoint, request);
  const headers = { 'content-type': 'application/json' };
  return send(na, 'POST', endpoint, { body: rawBody ?? jsonText(request), headers });
}

/** Sends the case and compares the answer and its audit entries member by member. */
export async function assertAnswered(na: TestAuthority, golden: GoldenCase): Promise<void> {
  const { endpoint, status, body } = golden;
  const earlier = auditEvents(na).length;
  const answer = await ask(na, golden);
  assert.equal(answer.status, status, outcome(answer));
  const given = reducedError(parseJson(answer.text) as JsonObject);
  assertMatches(violationsInFull(body), given, { path: 'body', now: na.clock.now() });
  const outcomes = auditEvents(na).slice(earlier);
  const types = outcomes.map(({ type }) => type).filter((type) => type !== ASSESSED);
  assert.deepEqual(types, eventsAfter(endpoint, status));
}

/** Only a success or a failed authentication is audited. */
function eventsAfter(endpoint: string, status: number): string[] {
  if (status === 401) return ['admin_auth_failed'];
  const event = EVENTS[endpoint];
  return status < 300 && event !== undefined ? [event] : [];
}

/** Removes messages and details, which each authority words differently. */
function reducedError(body: JsonObject): JsonObject {
  const { error } = body;
  return isJsonObject(error) ? { ...body, error: { code: error.code ?? null } } : body;
}

/** Completes violations, which the vectors reduce to the members that are the same in every answer. */
function violationsInFull(body: JsonValue): JsonValue {
  if (!isJsonObject(body) || !Array.isArray(body.violations)) return body;
  const violations = (body.violations as JsonObject[]).map((violation) => ({
    ...violation,
    violation_id: { $match: 'uuid' },
    detail: { $match: 'text' },
    detected_at: { $match: 'timestamp', offset_seconds: 0 },
  }));
  return { ...body, violations };
}

interface Place {
  readonly path: string;
  /** Milliseconds since the epoch of the request. */
  readonly now: number;
  /** The record whose member is compared. */
  readonly record?: JsonObject;
}

/** Requires exactly these members, token by token; `{"$match": kind}` matches any value of the kind. */
function assertMatches(expected: JsonValue, actual: JsonValue | undefined, place: Place): void {
  const { path } = place;
  if (isJsonObject(expected) && '$match' in expected) {
    assertKind(expected, actual, place);
  } else if (isJsonObject(expected)) {
    assert.ok(isJsonObject(actual), `${path} is an object`);
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(expected).sort(), path);
    for (const [name, member] of Object.entries(expected)) {
      assertMatches(member, actual[name], { ...place, path: `${path}.${name}`, record: actual });
    }
  } else if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), `${path} is a list`);
    assert.equal(actual.length, expected.length, `length of ${path}`);
    for (const [at, item] of expected.entries()) {
      assertMatches(item, actual[at], { ...place, path: `${path}[${at}]` });
    }
  } else {
    assert.equal(canonicalJson(actual ?? null), canonicalJson(expected), path);
  }
}

type KindCheck = (actual: JsonValue | undefined, template: JsonObject, place: Place) => void;

const KINDS: { readonly [kind: string]: KindCheck } = {
  any: (actual, _, { path }) => assert.notEqual(actual, undefined, path),
  text: (actual, _, { path }) => assert.equal(typeof actual, 'string', path),
  uuid: (actual, _, { path }) => assert.match(String(actual), UUID, path),
  sha256: (actual, _, { path }) => assert.match(String(actual), /^[0-9a-f]{64}$/, path),
  hex32: (actual, _, { path }) => assert.match(String(actual), /^[0-9a-f]{32}$/, path),
  timestamp(actual, { offset_seconds: offset }, { path, now }) {
    assert.equal(actual, formatInstant(now + Number(offset) * SECOND), path);
  },
  signature(actual, { key, key_id: keyId }, place) {
    const signer = goldenKey(String(key));
    assertSigned(actual, signer, String(keyId ?? signer.publicKey), place);
  },
  signatures(actual, { keys }, place) {
    const names = keys as readonly string[];
    assert.ok(Array.isArray(actual), place.path);
    assert.equal(actual.length, names.length, `number of ${place.path}`);
    for (const [at, name] of names.entries()) {
      const signer = name === 'any' ? namedSigner(actual[at]) : goldenKey(name);
      assertSigned(actual[at], signer, signer.publicKey, place);
    }
  },
};

function assertKind(template: JsonObject, actual: JsonValue | undefined, place: Place): void {
  const check = KINDS[String(template.$match)];
  assert.ok(check !== undefined, `${place.path}: unknown kind ${String(template.$match)}`);
  check(actual, template, place);
}

/** The golden key that a signature names. */
function namedSigner(signature: JsonValue | undefined): Signer {
  const keyId = isJsonObject(signature) ? signature.key_id : undefined;
  const name = Object.keys(GOLDEN.keys).find((key) => GOLDEN.keys[key]?.public_base64 === keyId);
  return goldenKey(String(name));
}

/** Ed25519 signatures are deterministic, so the right text has only this one. */
function assertSigned(
  actual: JsonValue | undefined,
  signer: Signer,
  keyId: string,
  { record = {}, path }: Place,
): void {
  assert.deepEqual(actual, { key_id: keyId, sig: signer.sign(signedTextOf(record)) }, path);
}

/** The members that signatures on counters and agreements cover [trust-2-5]. */
const AGREED = [
  'agreed_terms',
  'graph_digest',
  'offer_id',
  'offerer_evidence',
  'offerer_sovereign_id',
  'responder_evidence',
  'responder_sovereign_id',
] as const;

/** The text that the signatures of a record in canonical spelling cover. */
export function signedTextOf(record: JsonObject): string {
  if (!('responder_evidence' in record)) {
    return canonicalJson(record, 'signature' in record ? 'signature' : 'signatures');
  }
  return canonicalJson(Object.fromEntries(AGREED.map((name) => [name, record[name] ?? null])));
}

/** Sends the case, which must succeed, and returns the sorted names of the details in its event. */
export async function eventDetailNames(na: TestAuthority, golden: GoldenCase): Promise<string[]> {
  const earlier = auditEvents(na).length;
  const answer = await ask(na, golden);
  assert.equal(answer.status, golden.status, outcome(answer));
  const outcomes = auditEvents(na).slice(earlier);
  const event = outcomes.find(({ type }) => type === EVENTS[golden.endpoint]);
  return Object.keys(event?.details ?? {}).sort();
}
