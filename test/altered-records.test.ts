/** Signed records that were altered in any way do not verify [core-1-5]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../src/base/json/write.ts';
import { readAgentDescriptor } from '../src/protocol/records/agent-descriptor.ts';
import { readMembershipAttestation } from '../src/protocol/records/membership-attestation.ts';
import { readRecognitionTreaty } from '../src/protocol/records/recognition-treaty.ts';
import { readRevocationFeed } from '../src/protocol/records/revocation-feed.ts';
import {
  isSignedByAny,
  type SignedRecord,
  signedText,
} from '../src/protocol/records/signed-record.ts';
import type { Draft } from './support/recognition-verification.ts';
import { newKey } from './support/requests.ts';
import { signedBy, sovereign } from './support/trust.ts';

const now = Date.UTC(2026, 2, 1, 10);
const free = parseJson('{"limit":1.0,"n":10,"name":"Z\\u00fcrich \\u2713","deep":[{"a":null}]}');
const [home, abroad] = [sovereign('beta'), sovereign('gamma')];
const SUBJECTS: readonly (readonly [string, JsonObject, (r: unknown) => SignedRecord | null])[] = [
  [
    'an attestation',
    home.attestation(now, { claims: free, subject_public_key: 'text' }),
    (received) => readMembershipAttestation(received),
  ],
  [
    'a treaty',
    home.treaty(now, abroad, { metadata: free }),
    (received) => readRecognitionTreaty(received),
  ],
  [
    'a revocation feed',
    home.feed(now, 7, {
      revoked_attestation_ids: ['a', 'b'],
      revocation_reasons: { b: 'left' },
    }),
    (received) => readRevocationFeed(received),
  ],
  [
    'an agent descriptor',
    signedBy(
      {
        agent_id: 'agent-1',
        node_public_key: home.key.publicKey,
        network_name: 'alpha',
        capabilities: ['llm:chat', 'b'],
        endpoint: { host: '127.0.0.1', port: 7448, scheme: 'ws' },
        registered_at: '2026-03-01T10:00:00Z',
        expires_at: '2026-03-01T10:10:00Z',
        metadata: free,
      },
      home.key,
    ),
    (received) => readAgentDescriptor(received),
  ],
];

for (const [name, record, read] of SUBJECTS) {
  const original = read(record);
  assert.ok(
    original !== null && isSignedByAny(original, [home.key.publicKey], verifySignature),
    name,
  );
  const said = signedText(original);
  const signature = original.signatures[0]?.sig;

  /** A changed record still verifies only if its content and signature are unchanged. */
  function isJudgedCorrectly(received: JsonValue): boolean {
    const copy = read(received);
    if (copy === null || !isSignedByAny(copy, [home.key.publicKey], verifySignature)) return true;
    return signedText(copy) === said && copy.signatures.some(({ sig }) => sig === signature);
  }

  test(`${name} with any single byte of its text changed has the same meaning or does not verify`, () => {
    const bytes = Buffer.from(jsonText(record));
    for (let at = 0; at < bytes.length; at += 1) {
      for (const flip of [0x01, 0x02, 0x20]) {
        const copy = Buffer.from(bytes);
        copy[at] = (copy[at] ?? 0) ^ flip;
        const received = parsedOrNull(copy.toString('utf8'));
        assert.ok(isJudgedCorrectly(received), copy.toString('utf8'));
      }
    }
  });

  test(`${name} with any single member changed, dropped or added has the same meaning or does not verify`, () => {
    const paths = pathsOf(record);
    const value = fc.oneof(
      fc.constantFrom<JsonValue>(null, true, 0, 1, '', 'active', 'revoked', [], {}, ['x'], {
        x: 1,
      }),
      fc.constantFrom<JsonValue>(new JsonFloat(1), 2n ** 64n, '2026-03-01T10:00:00+00:00'),
      fc.string(),
      fc.integer(),
    );
    fc.assert(
      fc.property(fc.constantFrom(...paths), value, fc.boolean(), (path, other, drop) => {
        assert.ok(isJudgedCorrectly(changed(record, path, drop ? undefined : other)));
      }),
      { numRuns: 400 },
    );
  });

  test(`${name} verifies under no other key, and not over another canonical form`, () => {
    const other = newKey();
    assert.equal(isSignedByAny(original, [other.publicKey], verifySignature), false);
    const bare: JsonObject = { ...record };
    const plain = JSON.stringify(JSON.parse(canonicalJson(bare, 'signatures')), null, 1);
    const resigned = { ...bare, signatures: [{ key_id: 'k', sig: home.key.sign(plain) }] };
    const copy = read(resigned);
    assert.ok(copy !== null && !isSignedByAny(copy, [home.key.publicKey], verifySignature));
  });
}

function parsedOrNull(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch (cause) {
    if (cause instanceof SyntaxError) return null;
    throw cause;
  }
}

type Path = readonly (string | number)[];

/** Every path inside a value, including the root, and one additional member for each object. */
function pathsOf(value: JsonValue): Path[] {
  if (Array.isArray(value)) {
    return [[], ...value.flatMap((item, n) => pathsOf(item).map((path) => [n, ...path]))];
  }
  if (typeof value !== 'object' || value === null || value instanceof JsonFloat) return [[]];
  const inside = Object.entries(value).flatMap(([name, member]) =>
    pathsOf(member).map((path): Path => [name, ...path]),
  );
  return [[], ['added'], ...inside];
}

function changed(value: JsonValue, [step, ...rest]: Path, other: JsonValue | undefined): JsonValue {
  if (step === undefined) return other ?? null;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as JsonObject) }) as Draft;
  const inner = copy[step];
  if (rest.length > 0) copy[step] = changed(inner ?? null, rest, other);
  else if (other !== undefined) copy[step] = other;
  else if (Array.isArray(copy)) copy.splice(Number(step), 1);
  else delete copy[step];
  return copy as JsonValue;
}
