/** Trust between sovereigns: another sovereign with its own key, the records that it signs, and requests with them. */
import type {
  ImportedBy,
  RecognitionIndex,
} from '../../src/authority/recognition/recognition-index.ts';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { parseJson } from '../../src/base/json/parse.ts';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './authority.ts';
import { HOUR, testClock } from './clock.ts';
import { networkFolder } from './folders.ts';
import {
  auditEvents,
  newKey,
  type OperatorCall,
  operate,
  outcome,
  type Received,
  send,
} from './requests.ts';

export const IMPORT = '/admin/sovereign-revocation-feeds/import';
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** No rate limits apply; tests about limits turn theirs on again. */
export function startUnlimited(options: TestOptions = {}): Promise<TestAuthority> {
  return startTestAuthority({
    ...options,
    environment: {
      MESH_RATE_LIMIT_AGENTS: 'off',
      MESH_RATE_LIMIT_AGENT_DELETE: 'off',
      MESH_RATE_LIMIT_VERIFY: 'off',
      ...options.environment,
    },
  });
}

/** Lets the attestations count as revoked by one imported feed, each for a reason or null. */
export function noteImport(
  index: RecognitionIndex,
  about: ImportedBy,
  revoked: readonly (readonly [attestationId: string, reason: string | null])[],
): void {
  const layer = index.beginImport(about);
  index.absorb(layer, revoked);
  index.endImport(layer);
}

export function post(
  na: { readonly url: string },
  path: string,
  body: JsonObject,
): Promise<Received> {
  return send(na, 'POST', path, { body: jsonText(body) });
}

/** The body of an answer with its types of numbers preserved, as another party of the network reads it. */
export function parsed(answer: Received): JsonObject {
  return parseJson(answer.text) as JsonObject;
}

/** The answer's record, which must have been issued. */
export async function issued(answer: Received | Promise<Received>): Promise<JsonObject> {
  const received = await answer;
  if (received.status !== 200) throw new Error(`Not issued: ${outcome(received)} ${received.text}`);
  return parsed(received);
}

/** Whether the record's first signature verifies over its canonical text. */
export function verifies(record: JsonObject, publicKey: string): boolean {
  const [first] = record.signatures as readonly JsonObject[];
  return verifySignature(publicKey, canonicalJson(record, 'signatures'), String(first?.sig));
}

/** Signs the record over its canonical text with one or more keys; replaces earlier signatures. */
export function signedBy(record: JsonObject, ...keys: readonly Signer[]): JsonObject {
  const text = canonicalJson(record, 'signatures');
  const signatures = keys.map((key) => ({ key_id: key.publicKey, sig: key.sign(text) }));
  return { ...record, signatures };
}

/** Another sovereign, reduced to what it signs. Instants are milliseconds since the epoch. */
export interface Sovereign {
  readonly name: string;
  readonly key: Signer;
  attestation(now: number, changes?: JsonObject): JsonObject;
  /** A treaty with `subject`, who signs with `subjectKey`. */
  treaty(now: number, subject: Sovereign, changes?: JsonObject): JsonObject;
  feed(now: number, sequence: number | bigint, changes?: JsonObject): JsonObject;
}

let made = 0;

/** A name for a record that no other record of this test process has. */
export function freshId(prefix: string): string {
  made += 1;
  return `${prefix}-${made}`;
}

/** A key whose text fits. Fitting texts may be rare, so this may generate many keys. */
export function keyThat(fits: (publicKey: string) => boolean): Signer {
  for (;;) {
    const key = newKey();
    if (fits(key.publicKey)) return key;
  }
}

/** A key that looks different in the URL alphabet, so that each of its misspellings really is one. */
export function misspellableKey(): Signer {
  return keyThat((publicKey) => publicKey.includes('+') && publicKey.includes('/'));
}

export function sovereign(name: string, key: Signer = newKey()): Sovereign {
  return {
    name,
    key,
    attestation: (now, changes = {}) =>
      signedBy({ ...attestationDraft(name, now), ...changes }, key),
    treaty: (now, subject, changes = {}) =>
      signedBy({ ...treatyDraft(name, subject, now), ...changes }, key),
    feed: (now, sequence, changes = {}) =>
      signedBy({ ...feedDraft(name, key, now), sequence, ...changes }, key),
  };
}

function attestationDraft(issuer: string, now: number): JsonObject {
  return {
    attestation_id: freshId('attestation'),
    issuer_sovereign_id: issuer,
    subject_id: 'agent-7',
    subject_public_key: null,
    roles: ['role:client'],
    status: 'active',
    issued_at: formatInstant(now),
    valid_from: formatInstant(now),
    expires_at: formatInstant(now + HOUR),
    issued_by: 'na-key',
    claims: {},
  };
}

function treatyDraft(issuer: string, subject: Sovereign, now: number): JsonObject {
  return {
    treaty_id: freshId('treaty'),
    issuer_sovereign_id: issuer,
    subject_sovereign_id: subject.name,
    subject_public_keys: [subject.key.publicKey],
    scope: { allowed_roles: [], accepted_statuses: ['active'], claims: {} },
    status: 'active',
    issued_at: formatInstant(now),
    valid_from: formatInstant(now),
    expires_at: formatInstant(now + HOUR),
    issued_by: 'na-key',
    metadata: {},
  };
}

function feedDraft(issuer: string, key: Signer, now: number): JsonObject {
  return {
    feed_id: freshId('feed'),
    issuer_sovereign_id: issuer,
    issued_at: formatInstant(now),
    revoked_attestation_ids: [],
    revocation_reasons: {},
    issued_by: key.publicKey,
  };
}

/** Makes the authority issue an attestation; `terms` change or extend the minimal request. */
export function attest(na: TestAuthority, terms: JsonObject = {}, call: OperatorCall = {}) {
  const body = { subject_id: 'agent-7', roles: ['role:client'], ...terms };
  return operate(na, '/admin/attestations', body, call);
}

/** Makes the authority issue a treaty; `terms` change or extend the minimal request. */
export function recognize(na: TestAuthority, terms: JsonObject = {}, call: OperatorCall = {}) {
  const body = {
    subject_sovereign_id: 'beta',
    subject_public_keys: [newKey().publicKey],
    ...terms,
  };
  return operate(na, '/admin/recognition-treaties', body, call);
}

export function revokeAttestation(na: TestAuthority, id: JsonValue | undefined, body?: JsonObject) {
  return operate(na, `/admin/attestations/${encodeURIComponent(String(id))}/revoke`, body);
}

export function revokeTreaty(na: TestAuthority, id: JsonValue | undefined, body?: JsonObject) {
  return operate(na, `/admin/recognition-treaties/${encodeURIComponent(String(id))}/revoke`, body);
}

export function importFeed(na: TestAuthority, feed: JsonObject, rest: JsonObject = {}) {
  return operate(na, IMPORT, { feed, ...rest });
}

/** Details of every audit event of this type. */
export function audited(na: TestAuthority, type: string): Record<string, unknown>[] {
  return auditEvents(na).flatMap((event) => (event.type === type ? [event.details] : []));
}

export async function sovereignPair(clock = testClock()) {
  const folder = networkFolder('beta');
  const alpha = await startTestAuthority({ clock });
  const beta = await startTestAuthority({ clock, dataDir: folder.path });
  return {
    ...{ clock, alpha, beta },
    async [Symbol.asyncDispose]() {
      for (const resource of [alpha, beta, folder]) await resource[Symbol.asyncDispose]();
    },
  };
}
