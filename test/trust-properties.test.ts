/** Records with random content: what their signatures cover [core-1-5], and what reading preserves. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { parseJson } from '../src/base/json/parse.ts';
import {
  isJsonObject,
  JsonFloat,
  type JsonObject,
  type JsonValue,
} from '../src/base/json/value.ts';
import { canonicalJson, compareCodePoints, jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  merkleRoot,
  proveMembership,
  rootOfPath,
} from '../src/protocol/records/capability-disclosure.ts';
import { CASCADE_THRESHOLD, scoreCascade } from '../src/protocol/records/consensus-proof.ts';
import type { Fresh } from '../src/protocol/records/record.ts';
import { isLeaf, type Node, nodesOf, put, rebuilt, variantsOf } from './support/altered.ts';
import { GOLDEN, signedTextOf } from './support/golden-trust.ts';
import { formOf, mustRead, READERS, read } from './support/record-kinds.ts';
import { signedBy, sovereign } from './support/trust.ts';
import {
  isBelowFree,
  isDatetime,
  json,
  NOW,
  OWN_KEY,
  recordsLike,
  SIGNER,
  STRANGER,
  text,
} from './support/trust-drafts.ts';

/** Records of each type that is received. */
const EXAMPLES: readonly (readonly [type: string, examples: readonly JsonObject[]])[] = [
  ...Object.entries(GOLDEN.records)
    .filter(([type]) => READERS[type] !== null)
    .map(([type, golden]) => [type, golden.map(({ record }) => record)] as const),
  [
    'SovereignRevocationFeed',
    [
      sovereign('alpha').feed(NOW, 7, {
        revoked_attestation_ids: ['a', 'b'],
        revocation_reasons: { b: 'left' },
      }),
    ],
  ],
  [
    'AgentDescriptor',
    [
      signedBy(
        {
          agent_id: 'agent-1',
          node_public_key: SIGNER.publicKey,
          network_name: 'alpha',
          capabilities: ['llm:chat', 'b'],
          endpoint: { host: '127.0.0.1', port: 7448, scheme: 'ws' },
          registered_at: '2026-03-01T10:00:00Z',
          expires_at: '2026-03-01T10:10:00Z',
          metadata: {},
        },
        SIGNER,
      ),
    ],
  ],
];

/** Members that no signature on the record covers [trust-2-4], [trust-2-5]. */
const UNCOVERED: { readonly [type: string]: readonly string[] } = {
  CapabilityCounter: ['expires_at'],
  AgreementRecord: ['agreement_id', 'established_at', 'expires_at'],
};

type Own = 'signature' | 'signatures';

function ownOf(record: JsonObject): Own {
  return 'signature' in record ? 'signature' : 'signatures';
}

/** With one signature, of the signer of all records here. */
function signed(record: JsonObject): JsonObject {
  const item = { key_id: 'key', sig: SIGNER.sign(signedTextOf(record)) };
  return { ...record, [ownOf(record)]: ownOf(record) === 'signature' ? item : [item] };
}

/** Null if it is refused. */
function isSigned(type: string, received: JsonValue, keys: readonly string[] = OWN_KEY) {
  return read(type, received) === null
    ? null
    : formOf(type, received as JsonObject).isSignedBy(keys);
}

const REWRITINGS: readonly (readonly [string, (record: JsonObject) => JsonValue])[] = [
  ['sent as JSON and parsed', (record) => parseJson(jsonText(record))],
  ['sent as ASCII, escaped and sorted', (record) => parseJson(canonicalJson(record))],
  ['with its members in another order', (record) => rebuilt(record, turned)],
  ['with unknown members', (record) => rebuilt(record, joinedByStranger)],
  ['with datetimes and integers spelled in another way', (record) => rebuilt(record, respelled)],
];

function turned({ value }: Node): JsonValue {
  return isJsonObject(value) ? Object.fromEntries(Object.entries(value).reverse()) : value;
}

function joinedByStranger({ path, value }: Node): JsonValue {
  return isJsonObject(value) && !isBelowFree(path) ? { ...value, unknown_member: [1] } : value;
}

function respelled({ path, value }: Node): JsonValue {
  if (isBelowFree(path)) return value;
  if (typeof value === 'number') return new JsonFloat(value);
  if (typeof value !== 'string' || !isDatetime(path)) return value;
  return value
    .replace('T', ' ')
    .replace(/Z$/, '-00:00')
    .replace(/(\.\d+)/, '$19');
}

for (const [type, examples] of EXAMPLES) {
  const [first = {}] = examples;
  if (!('signature' in first || 'signatures' in first)) continue;
  const own = ownOf(first);
  const records = fc.constantFrom(...examples).chain((example) => recordsLike(example).map(signed));
  const signatureOf = (record: JsonObject) =>
    (own === 'signature' ? record.signature : (record.signatures as JsonValue[])[0]) as JsonObject;
  const resigned = (record: JsonObject, changes: JsonObject) =>
    put(record, own === 'signature' ? [own] : [own, 0], { ...signatureOf(record), ...changes }) ??
    null;

  test(`${type}: no signed member can be changed unnoticed`, () => {
    fc.assert(
      fc.property(records, (record) => {
        assert.equal(isSigned(type, record), true);
        const before = canonicalJson(read(type, record));
        for (const { path, value } of nodesOf(record)) {
          const member = String(path[0]);
          if (member === own || member === 'undefined') continue;
          const statuses = value === 'active' ? ['revoked'] : [];
          const altered = [...variantsOf(value), ...statuses, undefined].flatMap((variant) => {
            const changed = put(record, path, variant) ?? null;
            const reading = read(type, changed);
            return reading === null || canonicalJson(reading) === before ? [] : [changed];
          });
          const at = path.join('.');
          // An id that has a reason is what the reason is for.
          const isReasoned = member === 'revoked_attestation_ids';
          assert.ok(altered.length > 0 || !isLeaf(value) || isReasoned, `${at} cannot be changed`);
          const covered = UNCOVERED[type]?.includes(member) !== true;
          for (const changed of altered) assert.equal(isSigned(type, changed), !covered, at);
        }
      }),
      { numRuns: 4 },
    );
  });

  test(`${type}: no byte of its text can be changed unnoticed`, () => {
    const [record = {}] = fc.sample(records, { seed: 1, numRuns: 1 });
    const bytes = Buffer.from(jsonText(record));
    for (const at of bytes.keys()) {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ ([0x01, 0x02, 0x20][at % 3] ?? 0);
      const received = parsedOrNull(copy.toString('utf8'));
      if (isSigned(type, received) !== true) continue;
      const form = formOf(type, received as JsonObject);
      assert.equal(form.text, formOf(type, record).text, copy.toString('utf8'));
      assert.equal(form.signatures[0]?.sig, signatureOf(record).sig);
    }
  });

  test(`${type}: it depends on its signature and the key it is verified with`, () => {
    fc.assert(
      fc.property(records, fc.nat({ max: 63 }), text, (record, at, label) => {
        const { sig } = signatureOf(record);
        assert.equal(isSigned(type, resigned(record, { sig: flipped(String(sig), at) })), false);
        assert.equal(
          isSigned(type, resigned(record, { key_id: label })),
          true,
          'it selects nothing',
        );
        assert.equal(isSigned(type, record, [STRANGER.publicKey]), false);
        assert.equal(isSigned(type, record, []), false);
        for (const nothing of [own === 'signature' ? null : [], undefined]) {
          assert.equal(isSigned(type, put(record, [own], nothing) ?? null), false);
        }
        const pretty = JSON.stringify(JSON.parse(signedTextOf(record)), null, 1);
        assert.equal(isSigned(type, resigned(record, { sig: SIGNER.sign(pretty) })), false);
      }),
      { numRuns: 6 },
    );
  });

  test(`${type}: it is the same record however it is sent, and read again`, () => {
    fc.assert(
      fc.property(records, (record) => {
        const reading = mustRead(type, record);
        const canonical = canonicalJson(reading);
        assert.equal(canonical, canonicalJson(record), 'reading kept all of it');
        assert.equal(canonicalJson(read(type, reading)), canonical);
        for (const [how, rewrite] of REWRITINGS) {
          const rewritten = rewrite(record);
          assert.equal(isSigned(type, rewritten), true, how);
          assert.equal(canonicalJson(read(type, rewritten)), canonical, how);
        }
      }),
      { numRuns: 6 },
    );
  });
}

function parsedOrNull(sent: string): JsonValue {
  try {
    return parseJson(sent);
  } catch (cause) {
    if (cause instanceof SyntaxError) return null;
    throw cause;
  }
}

/** The base64 text with one bit of one byte flipped. */
function flipped(base64: string, at: number): string {
  const bytes = Buffer.from(base64, 'base64');
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes.toString('base64');
}

/** Keys as callers may send them. */
const keyText = fc.oneof(
  text,
  fc
    .uint8Array({ minLength: 30, maxLength: 34 })
    .map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.constantFrom(
    SIGNER.publicKey,
    STRANGER.publicKey,
    Buffer.alloc(32).toString('base64'),
    Buffer.alloc(32, 255).toString('base64'),
    SIGNER.publicKey.replace('=', ''),
    `${SIGNER.publicKey}\n`,
  ),
);
const keyLists = fc.array(keyText, { maxLength: 40 });
const damages = fc.array(fc.tuple(fc.nat(), fc.option(json, { nil: undefined })), {
  minLength: 1,
  maxLength: 3,
});

for (const [type, examples] of EXAMPLES) {
  const records = fc.constantFrom(...examples).chain((example) => recordsLike(example));

  test(`${type}: anything sent as one is read as one, once and for all, or refused`, () => {
    const fresh: Fresh = { now: NOW, uuid: () => '00000000-0000-4000-8000-000000000000' };
    const check = (received: JsonValue, keys: readonly string[]) => {
      const reading = read(type, received, fresh);
      if (reading === null) {
        return assert.equal(read(type, received), null, 'nor without fresh values');
      }
      const canonical = canonicalJson(reading);
      assert.equal(canonicalJson(read(type, reading)), canonical, 'again, without fresh values');
      assert.equal(canonicalJson(read(type, parseJson(jsonText(reading)))), canonical);
      if (ownOf(reading) in reading) assert.equal(typeof isSigned(type, reading, keys), 'boolean');
    };
    fc.assert(
      fc.property(records, damages, keyLists, (record, changes, keys) => {
        let received: JsonValue = record;
        for (const [pick, change] of changes) {
          const nodes = nodesOf(received);
          received = put(received, nodes[pick % nodes.length]?.path ?? [], change) ?? null;
        }
        check(received, keys);
      }),
      { numRuns: 25 },
    );
    fc.assert(fc.property(json, keyLists, check), { numRuns: 10 });
  });
}

const capability = text.filter((tag) => tag !== '');
/** Sets with duplicates: few distinct texts in many places. */
const capabilitySets = fc.oneof(
  fc.array(capability, { minLength: 1, maxLength: 70, size: 'max' }),
  fc.array(fc.constantFrom<string[]>('a', 'b', '\ue000', '\u{1f600}'), {
    minLength: 1,
    maxLength: 20,
  }),
);

/** The root over the leaves, computed exactly as specified [trust-3-3], from the root down. */
function referenceRoot(capabilities: readonly string[]): string {
  const leaves = capabilities.toSorted(compareCodePoints).map((tag) => hashOf(tag));
  let width = 1;
  while (width < leaves.length) width *= 2;
  const rootOf = (from: number, size: number): Buffer =>
    size === 1
      ? (leaves[from] ?? hashOf(''))
      : hashOf(Buffer.concat([rootOf(from, size / 2), rootOf(from + size / 2, size / 2)]));
  return rootOf(0, width).toString('hex');
}

function hashOf(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}

/** The proof that the member is in the set. */
function proofOf(capabilities: readonly string[], capability: string) {
  const disclosure = { commitmentId: 'commitment', capability, capabilities, prover: 'beta' };
  const proof = proveMembership(disclosure, 'proof', NOW, SHA256);
  assert.ok(proof !== null, `${capability} is not among the capabilities`);
  return proof;
}

test('every capability of a set has a proof of membership, with a path of the bits of the count less one', () => {
  fc.assert(
    fc.property(capabilitySets, (capabilities) => {
      const root = merkleRoot(capabilities, SHA256);
      assert.equal(root, referenceRoot(capabilities));
      const length = Math.ceil(Math.log2(capabilities.length));
      for (const member of new Set(capabilities)) {
        const { leaf_hash, merkle_path } = proofOf(capabilities, member);
        assert.equal(leaf_hash, hashOf(member).toString('hex'));
        assert.equal(merkle_path.length, length);
        assert.equal(rootOfPath(leaf_hash, merkle_path, SHA256), root);
      }
    }),
    { numRuns: 25 },
  );
});

test('the order of a set changes neither its root nor its proofs', () => {
  const pairs = capabilitySets.chain((set) =>
    fc.tuple(fc.constant(set), fc.shuffledSubarray(set, { minLength: set.length })),
  );
  fc.assert(
    fc.property(pairs, ([capabilities, shuffled]) => {
      const [member = ''] = capabilities;
      assert.equal(merkleRoot(shuffled, SHA256), merkleRoot(capabilities, SHA256));
      assert.deepEqual(proofOf(shuffled, member), proofOf(capabilities, member));
    }),
    { numRuns: 25 },
  );
});

type Ballot = Parameters<typeof scoreCascade>[0][number];

function ballotAt(validator: string, micros: number, digest: string | null): Ballot {
  const voted_at = formatInstant(NOW + micros / 1000);
  return { vote: true, validator_sovereign_id: validator, voted_at, context_digest: digest };
}

const digests = fc.option(fc.constantFrom('d1', 'd2', 'd3'), { freq: 5 });
const micros = fc.oneof(fc.nat({ max: 1_000_000 }), fc.nat({ max: 120_000_000 }));
/** Ballots of distinct validators, each at a different time. */
const ballots = fc
  .uniqueArray(fc.tuple(micros, digests), { selector: ([at]) => at, maxLength: 12 })
  .map((list) => list.map(([at, digest], index) => ballotAt(`val-${index}`, at, digest)));

function assertSameScore(of: readonly Ballot[], as: readonly Ballot[]): void {
  const [found, expected] = [scoreCascade(of), scoreCascade(as)];
  assert.ok(Math.abs(found.score - expected.score) < 1e-9, `${found.score}, ${expected.score}`);
  assert.equal(found.approvals, expected.approvals);
  assert.equal(found.uniqueDigests, expected.uniqueDigests);
}

test('a cascade score is within 0 and 1, whatever the order of the votes', () => {
  const orders = ballots.chain((list) =>
    fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
  );
  fc.assert(
    fc.property(orders, ([votes, shuffled]) => {
      const { score, contextDivergence, temporalClustering, blocked, approvals } =
        scoreCascade(votes);
      for (const part of [score, contextDivergence, temporalClustering]) {
        assert.ok(part >= 0 && part <= 1, `${part}`);
      }
      assert.equal(blocked, score > CASCADE_THRESHOLD);
      assert.equal(approvals, votes.length);
      assertSameScore(shuffled, votes);
      const rejecting = votes.map((vote) => ({ ...vote, vote: false }));
      assertSameScore([...rejecting, ...votes], votes);
      assert.equal(scoreCascade(rejecting).score, 0);
    }),
    { numRuns: 150 },
  );
});
