/** How a request to a webhook is signed [events-6], and what a receiver accepts and refuses [events-7]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { SHA256, sha256Hex } from '../src/base/crypto/digest.ts';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { EventPlace } from '../src/client/events.ts';
import { readWebhook } from '../src/client/webhook.ts';
import { webhookProof, webhookProofText } from '../src/protocol/records/webhook-proof.ts';
import { readVectors } from './support/vectors.ts';

interface Case {
  readonly about: string;
  readonly now: string;
  readonly after: EventPlace | null;
  readonly header: string;
  readonly body: string;
}

interface Vectors {
  readonly keys: { readonly authority: { seed_base64: string; public_base64: string } };
  readonly request: Readonly<
    Record<'body' | 'body_sha256' | 'timestamp' | 'signed_text' | 'header', string>
  >;
  readonly accepted: readonly (Case & { readonly new: readonly number[] })[];
  readonly refused: readonly (Case & { readonly reason: string })[];
}

const { keys, request, accepted, refused } = readVectors<Vectors>('webhooks.json');
const authorityKey = keys.authority.public_base64;

test('the authority signs as the vectors are signed', () => {
  const signer = signerFromSeed(Buffer.from(keys.authority.seed_base64, 'base64'));
  const { body, timestamp } = request;
  assert.equal(sha256Hex(body), request.body_sha256);
  const proof = { key: signer.publicKey, timestamp };
  assert.equal(webhookProofText(request.body_sha256, proof), request.signed_text);
  assert.equal(webhookProof(request.body_sha256, timestamp, signer), request.header);
});

suite('a receiver accepts the vectors', () => {
  for (const vector of accepted) {
    test(vector.about, () => {
      for (const verdict of verdictsOn(vector)) {
        assert.ok(verdict.valid);
        assert.deepEqual(
          verdict.events.map(({ index }) => index),
          vector.new,
        );
      }
    });
  }
});

suite('a receiver refuses the vectors', () => {
  for (const vector of refused) {
    test(vector.about, () => {
      for (const verdict of verdictsOn(vector)) {
        assert.deepEqual(verdict, { valid: false, reason: vector.reason });
      }
    });
  }
});

test('a header that is absent, or was sent twice, is not a proof', () => {
  for (const proof of [undefined, null, [request.header, request.header], 7]) {
    const verdict = readWebhook({ proof, body: request.body }, { authorityKey, after: null });
    assert.deepEqual(verdict, { valid: false, reason: 'missing_proof' });
  }
});

test('a receiver that follows the authority accepts the signature of any key that signs now', () => {
  const [current, previous] = ['a current key', authorityKey];
  const reasonUnder = (...keys: string[]) => {
    const followed = { signingNow: () => keys, signingAt: () => [authorityKey] };
    const verdict = readWebhook(
      { proof: request.header, body: request.body },
      { authorityKey: followed, after: null, now: () => Date.parse(request.timestamp) },
    );
    return verdict.valid ? 'valid' : verdict.reason;
  };
  assert.equal(reasonUnder(current, previous), 'valid');
  assert.equal(reasonUnder(current), 'wrong_key');
});

/** The verdicts of portable code on a text, and of the server's code on bytes; they must agree. */
function verdictsOn({ header: proof, body, after, now }: Case) {
  const expected = { authorityKey, after, now: () => Date.parse(now) };
  return [
    readWebhook({ proof, body }, expected),
    readWebhook(
      { proof, body: Buffer.from(body) },
      { ...expected, verify: verifySignature, sha256: SHA256 },
    ),
  ];
}
