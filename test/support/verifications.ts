/** Public verifications in process, judged as the routes of an authority judge them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { SHA256 } from '../../src/base/crypto/digest.ts';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import { parseJson } from '../../src/base/json/parse.ts';
import { isJsonObject, type JsonObject } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import type { Verification, Verifier } from '../../src/protocol/api/verification.ts';
import { REFUSALS, Refusal } from '../../src/protocol/refusals.ts';
import { checkTable, type Table } from './tables.ts';
import { type Sovereign, sovereign } from './trust.ts';

export const NOW = Date.UTC(2026, 0, 15, 12);
/** The authority that is asked. */
export const us = sovereign('alpha');

/** What the authority knows; nothing is revoked, and there are no treaties, unless the changes say so. */
export function verifier(changes: Partial<Verifier> = {}): Verifier {
  return {
    now: NOW,
    uuid: randomUUID,
    verify: verifySignature,
    sha256: SHA256,
    isBounded: true,
    ownKeys: () => [us.key.publicKey],
    ownName: us.name,
    ownPolicy: () => Promise.reject(new Refusal('missing_recognition_policy')),
    askRevocations: () => ({
      attestation_revoked_here: false,
      attestation_revoked_by_feed: false,
      treaty_revoked: false,
      treaty_keys: [],
    }),
    ...changes,
  };
}

/** The verdict on a body as it arrives. */
export async function verdictOf(
  { judge }: Verification,
  body: JsonObject,
  by = verifier(),
): Promise<JsonObject> {
  const { verdict } = await judge(parseJson(jsonText(body)) as JsonObject, by);
  return verdict as JsonObject;
}

const POSITIVE = /^(accepted|authorized|unauthorized_.*|valid)$/;

/** The reason of the verdict, or the refusal, such as `400 invalid_proof too_many_keys`. */
export async function resultOf(
  verification: Verification,
  body: JsonObject,
  by?: Verifier,
): Promise<string> {
  try {
    const verdict = await verdictOf(verification, body, by);
    const types = verdict.violations as readonly JsonObject[] | undefined;
    const named = types?.map(({ violation_type }) => violation_type).join(', ') || 'valid';
    const reason = types === undefined ? String(verdict.reason) : named;
    assert.equal(verdict.accepted ?? verdict.valid, POSITIVE.test(reason));
    if ('authorized' in verdict) assert.equal(verdict.authorized, reason === 'authorized');
    return reason;
  } catch (cause) {
    return refusalText(cause);
  }
}

/** A refusal with its cause, such as `400 invalid_proof too_many_keys`; there is one if the cure says so. */
export function refusalText(thrown: unknown): string {
  if (!(thrown instanceof Refusal)) throw thrown;
  const { status, code, cure } = REFUSALS[thrown.refusal];
  assert.ok('cause' in thrown.details || !/`details\.cause` (names|says)/.test(cure), code);
  return [status, code, thrown.details.cause].filter((part) => part !== undefined).join(' ');
}

/** Checks cases that are bodies, or parts of one that `rest` completes. */
export function checkVerdicts(
  verification: Verification,
  table: Table,
  rest: JsonObject = {},
): Promise<void> {
  return checkTable(table, (given) => resultOf(verification, { ...rest, ...given }));
}

/** The records under their names, each as the only member of a part of a body. */
export function eachAs(
  member: string,
  records: { readonly [name: string]: JsonObject },
): { readonly [name: string]: JsonObject } {
  assert.ok(Object.values(records).every(isJsonObject));
  return Object.fromEntries(
    Object.entries(records).map(([name, record]) => [name, { [member]: record }]),
  );
}

/** What a recognition policy says of the sovereign. */
export function entryOf({ name, key }: Sovereign): JsonObject {
  return {
    sovereign_id: name,
    public_keys: [key.publicKey],
    allowed_roles: ['role:client'],
    accepted_statuses: ['active'],
  };
}

export function policyOf(...recognized_issuers: readonly JsonObject[]): JsonObject {
  return { local_sovereign_id: 'alpha', recognized_issuers, revoked_attestation_ids: [] };
}
