/** The golden vectors, verified by the client without a server: the same records get the same reasons. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject, JsonValue } from '../src/base/json/value.ts';
import { createVerifier } from '../src/client/offline.ts';
import { casesOf, GOLDEN } from './support/golden-trust.ts';

const verifier = createVerifier({ now: () => Date.parse(GOLDEN.meta.clock) });

/** An authority that gets no keys uses its own; a client always has to name the keys. */
function keysOf(keys: JsonValue | undefined): string[] {
  return Array.isArray(keys) ? keys.map(String) : [GOLDEN.keys.na?.public_base64 ?? ''];
}

/** How the client verifies the records in a request to each endpoint. */
const JUDGED: Readonly<Record<string, (request: JsonObject) => string>> = {
  '/agreements/verify': (r) =>
    verifier.agreement(r.agreement, keysOf(r.offerer_public_keys), keysOf(r.responder_public_keys)),
  '/boundary/verify': (r) => verifier.decision(r.decision, keysOf(r.operator_public_keys)),
  '/trust-evidence/verify': (r) =>
    verifier.evidence(
      r.evidence,
      keysOf(r.issuer_public_keys),
      typeof r.expected_graph_digest === 'string' ? r.expected_graph_digest : null,
    ),
  '/disclosure/verify': (r) =>
    verifier.membership(r.proof, r.commitment, keysOf(r.issuer_public_keys)),
  '/attestations/verify': (r) => verifier.attestation(r.attestation, r.recognition_policy),
};

/** Null if the answer concerns the form of the request, not a record. */
function reasonOf(body: JsonValue): string | null {
  const { reason } = (body ?? {}) as JsonObject;
  return typeof reason === 'string' ? reason : null;
}

for (const [endpoint, judge] of Object.entries(JUDGED)) {
  for (const { name, request, rawBody, status, body } of casesOf('verify', endpoint)) {
    const reason = reasonOf(body);
    if (status !== 200 || reason === null) continue;
    test(`offline, ${name} of ${endpoint} is ${reason}`, () => {
      const sent = rawBody === null ? request : (parseJson(rawBody) as JsonObject);
      assert.equal(judge(sent), reason);
    });
  }
}
