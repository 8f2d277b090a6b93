import assert from 'node:assert/strict';
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  sign,
  verify as verifyByOpenssl,
} from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import nacl from 'tweetnacl';
import { decodeBase64 } from '../src/base/crypto/base64.ts';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import { isPublicKey } from '../src/base/crypto/public-key.ts';
import { verifyText } from '../src/client/keys.ts';
import { anyText } from './support/any-text.ts';
import { readVectors } from './support/vectors.ts';

interface SignatureVector {
  readonly id: string;
  readonly input: {
    readonly canonical_json: string;
    readonly public_key_b64: string;
    readonly signature_b64?: string;
  };
  readonly expected: { readonly signature_b64?: string; readonly valid: boolean };
}

const vectors = readVectors<SignatureVector[]>('signatures.json');

/** Both verifiers accept the same signatures [core-1-5]: the server with libsodium, the client in JavaScript. */
const VERIFIERS = [
  ['the server', verifySignature],
  ['the client', verifyText],
] as const;

/** The seeds behind the keys of the vectors [core-8]: bytes 0..31, 32..63, 64..95. */
const SEEDS = [0, 32, 64].map((first) =>
  Buffer.from(Array.from({ length: 32 }, (_, i) => first + i)),
);
const [seedA = Buffer.alloc(32)] = SEEDS;
const keyA = signerFromSeed(seedA);
const signedByA = 'the text';
const signatureA = Buffer.from(keyA.sign(signedByA), 'base64');

/** The order of the group, and the prime of the field. */
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const P = 2n ** 255n - 19n;

/** Every encoding of a point of small order [core-1-5], without the sign bit. */
const SMALL_ORDER = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
].flatMap((hex) => [Buffer.from(hex, 'hex'), withSignBit(Buffer.from(hex, 'hex'))]);

test('the vectors are signatures of the three known keys', () => {
  assert.ok(vectors.length > 0);
  const known = SEEDS.map((seed) => signerFromSeed(seed).publicKey);
  for (const { input } of vectors) assert.ok(known.includes(input.public_key_b64));
});

test('the vectors verify as they say, and this program makes the same signatures', () => {
  for (const { id, input, expected } of vectors) {
    const signature = expected.signature_b64 ?? input.signature_b64 ?? '';
    assert.notEqual(signature, '');
    const { canonical_json: text, public_key_b64: key } = input;
    for (const [who, verify] of VERIFIERS) {
      assert.equal(verify(key, text, signature), expected.valid, `${who}: ${id}`);
    }
    if (!expected.valid) continue;
    const signer = SEEDS.map(signerFromSeed).find(({ publicKey }) => publicKey === key);
    assert.equal(signer?.sign(text), signature, id);
  }
});

test('keys and signatures match two independent libraries, and all verify each other’s', () => {
  const seed = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(seed, anyText(), (bytes, text) => {
      const signer = signerFromSeed(Buffer.from(bytes));
      const message = Buffer.from(text, 'utf8');
      const pair = nacl.sign.keyPair.fromSeed(bytes);
      assert.equal(signer.publicKey, toBase64(pair.publicKey));
      const { openssl, publicKey } = opensslKeys(bytes);
      assert.equal(signer.publicKey, publicKey);
      const signature = signer.sign(text);
      assert.equal(signature, toBase64(nacl.sign.detached(message, pair.secretKey)));
      assert.equal(signature, toBase64(sign(null, message, openssl)));
      assert.equal(verifySignature(signer.publicKey, text, signature), true);
      const raw = fromBase64(signature);
      assert.equal(nacl.sign.detached.verify(message, raw, pair.publicKey), true);
      assert.equal(verifyByOpenssl(null, message, createPublicKey(openssl), raw), true);
    }),
    { numRuns: 20 },
  );
});

test('a signature, key or text with one bit changed is refused, as in both other libraries', () => {
  const place = fc.record({
    part: fc.constantFrom('signature', 'key', 'text'),
    bit: fc.integer({ min: 0, max: 511 }),
  });
  fc.assert(
    fc.property(place, ({ part, bit }) => {
      const parts = {
        signature: Buffer.from(signatureA),
        key: fromBase64(keyA.publicKey),
        text: Buffer.from(signedByA),
      };
      flip(parts[part as keyof typeof parts], bit);
      const { signature, key, text } = parts;
      const ours = verifySignature(toBase64(key), text.toString('latin1'), toBase64(signature));
      assert.equal(ours, false);
      assert.equal(nacl.sign.detached.verify(text, signature, key), false);
      assert.equal(verifyByOpenssl(null, text, opensslPublicKey(key), signature), false);
    }),
    { numRuns: 40 },
  );
});

test('text is signed and verified as UTF-8', () => {
  const signature = keyA.sign('Zürich ✓ 😀');
  assert.equal(verifySignature(keyA.publicKey, 'Zürich ✓ 😀', signature), true);
  const raw = nacl.sign.detached.verify(
    Buffer.from('Zürich ✓ 😀', 'utf8'),
    fromBase64(signature),
    fromBase64(keyA.publicKey),
  );
  assert.equal(raw, true);
});

for (const [who, verify] of VERIFIERS) {
  test(`${who} refuses keys of small order, whatever is forged for them`, () => {
    const points = [...SMALL_ORDER, fromBase64(keyA.publicKey)];
    for (const key of SMALL_ORDER) {
      for (const point of points) {
        const forged = toBase64(Buffer.concat([point, Buffer.alloc(32)]));
        for (let i = 0; i < 4; i += 1) {
          assert.equal(verify(toBase64(key), `message ${i}`, forged), false, key.toString('hex'));
        }
      }
    }
  });

  test(`${who} refuses the forgery that is valid for every message under the neutral key`, () => {
    const neutral = Buffer.concat([Buffer.from([1]), Buffer.alloc(31)]);
    const forged = Buffer.concat([neutral, Buffer.alloc(32)]);
    assert.equal(nacl.sign.detached.verify(Buffer.from('any text'), forged, neutral), true);
    assert.equal(verify(toBase64(neutral), 'any text', toBase64(forged)), false);
  });

  test(`${who} refuses a signature whose point is of small order, even if the key's owner created it`, () => {
    const key = fromBase64(keyA.publicKey);
    for (const point of SMALL_ORDER) {
      const signature = signatureWithPoint(point, signedByA);
      assert.equal(verify(toBase64(key), signedByA, toBase64(signature)), false);
    }
    const neutral = signatureWithPoint(littleEndian(1n), signedByA);
    assert.equal(nacl.sign.detached.verify(Buffer.from(signedByA), neutral, key), true);
  });

  test(`${who} refuses a public key that is not reduced`, () => {
    for (let excess = 0n; excess < 19n; excess += 1n) {
      for (const key of [littleEndian(P + excess), withSignBit(littleEndian(P + excess))]) {
        assert.equal(verify(toBase64(key), signedByA, toBase64(signatureA)), false);
      }
    }
  });

  test(`${who} refuses a scalar of L or more, although tweetnacl accepts it`, () => {
    const scalar = fromLittleEndian(signatureA.subarray(32));
    const malleable = Buffer.concat([signatureA.subarray(0, 32), littleEndian(scalar + L)]);
    const key = fromBase64(keyA.publicKey);
    assert.equal(verify(keyA.publicKey, signedByA, toBase64(signatureA)), true);
    assert.equal(nacl.sign.detached.verify(Buffer.from(signedByA), malleable, key), true);
    for (let multiple = 1n; scalar + multiple * L < 2n ** 256n; multiple += 1n) {
      const other = Buffer.concat([
        signatureA.subarray(0, 32),
        littleEndian(scalar + multiple * L),
      ]);
      assert.equal(verify(keyA.publicKey, signedByA, toBase64(other)), false);
    }
  });
}

/** Other spellings of base64 text; a lenient decoder decodes most of them to the same bytes. */
const SPELLINGS: readonly (readonly [string, (text: string) => string])[] = [
  ['without padding', (text) => text.replace(/=+$/, '')],
  ['with one more padding sign', (text) => `${text}=`],
  ['with bits set behind the last byte', otherLastDigit],
  ['in the URL alphabet', (text) => text.replaceAll('+', '-').replaceAll('/', '_')],
  ['with a line feed', (text) => `${text.slice(0, 20)}\n${text.slice(20)}`],
  ['with a blank before it', (text) => ` ${text}`],
  ['with a blank behind it', (text) => `${text} `],
  ['with a NUL behind it', (text) => `${text}\0`],
  ['twice', (text) => text + text],
  ['cut by a quantum', (text) => text.slice(0, -4)],
  ['in hexadecimal', (text) => Buffer.from(text, 'base64').toString('hex')],
  ['as nothing', () => ''],
];

test('a key in another spelling is not a key, and a signature in one never verifies', () => {
  // A key and signature whose base64 contains both characters that the URL alphabet replaces.
  const { signer, signature } = signatureWith(/[+/]/);
  for (const [how, spell] of SPELLINGS) {
    const key = spell(signer.publicKey);
    assert.notEqual(key, signer.publicKey);
    assert.equal(isPublicKey(key), false, how);
    for (const [, verify] of VERIFIERS) {
      assert.equal(verify(key, 'text', signature), false, how);
      assert.equal(verify(signer.publicKey, 'text', spell(signature)), false, how);
      assert.equal(verify(signer.publicKey, 'text', signature), true);
    }
  }
});

test('base64 decodes only to the exact number of bytes', () => {
  for (const length of [0, 1, 31, 32, 33, 63, 64, 65]) {
    const text = Buffer.alloc(length, 0xab).toString('base64');
    assert.deepEqual(decodeBase64(text, length), Buffer.alloc(length, 0xab));
    for (const other of [length - 1, length + 1]) {
      if (other >= 0) assert.equal(decodeBase64(text, other), null, `${length} as ${other}`);
    }
  }
});

test('among all spellings that decode to the same 32 bytes, exactly one is accepted', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const canonical = toBase64(bytes);
      assert.deepEqual(decodeBase64(canonical, 32), Buffer.from(bytes));
      for (const digit of ALPHABET) {
        const spelling = `${canonical.slice(0, 42)}${digit}=`;
        const decoded = decodeBase64(spelling, 32);
        if (decoded !== null) assert.equal(toBase64(decoded), spelling);
      }
    }),
    { numRuns: 50 },
  );
});

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Sets the unused bits of the last digit before the padding; Node's own decoder ignores them. */
function otherLastDigit(text: string): string {
  const at = text.indexOf('=') - 1;
  const digit = ALPHABET.charAt(ALPHABET.indexOf(text.charAt(at)) + 1);
  return text.slice(0, at) + digit + text.slice(at + 1);
}

/** PKCS#8 and SPKI encodings of Ed25519 keys up to their 32 bytes (RFC 8410, 7 and 4). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

function opensslKeys(seed: Uint8Array) {
  const key = Buffer.concat([PKCS8_HEAD, seed]);
  const openssl = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(openssl).export({ format: 'der', type: 'spki' });
  return { openssl, publicKey: toBase64(spki.subarray(SPKI_HEAD.length)) };
}

function opensslPublicKey(key: Buffer) {
  return createPublicKey({ key: Buffer.concat([SPKI_HEAD, key]), format: 'der', type: 'spki' });
}

function signatureWith(pattern: RegExp) {
  for (let first = 0; ; first += 1) {
    const signer = signerFromSeed(Buffer.alloc(32, first));
    const signature = signer.sign('text');
    if (pattern.test(signer.publicKey) && pattern.test(signature)) return { signer, signature };
  }
}

/** With the nonce 0, the holder of key A signs `point`, which adds nothing to s·B: s is hash · secret scalar. */
function signatureWithPoint(point: Uint8Array, text: string): Buffer {
  const secret = createHash('sha512').update(seedA).digest().subarray(0, 32);
  secret[0] = (secret[0] ?? 0) & 248;
  secret[31] = ((secret[31] ?? 0) & 63) | 64;
  const hash = createHash('sha512').update(point).update(fromBase64(keyA.publicKey)).update(text);
  const scalar = (fromLittleEndian(hash.digest()) * fromLittleEndian(secret)) % L;
  return Buffer.concat([point, littleEndian(scalar)]);
}

function flip(bytes: Uint8Array, bit: number): void {
  const at = (bit >> 3) % bytes.length;
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit & 7));
}

function withSignBit(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[31] = (copy[31] ?? 0) | 0x80;
  return copy;
}

function littleEndian(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();
}

function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function fromBase64(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

test('a text is signed and verified alike as text and as bytes, whatever came before it', () => {
  for (const text of ['ü'.repeat(40_000), 'long '.repeat(4000), 'short', '', '€'.repeat(21_845)]) {
    const bytes = Buffer.from(text, 'utf8');
    const signature = keyA.sign(bytes);
    assert.equal(keyA.sign(text), signature);
    assert.ok(verifySignature(keyA.publicKey, text, signature));
    assert.ok(verifySignature(keyA.publicKey, bytes, signature));
    assert.ok(!verifySignature(keyA.publicKey, `${text}.`, signature));
  }
});
