/** The secrets of the link while the signer that has the authority's keys is unavailable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { createAuthoritySigner, heldHere } from '../src/base/signer/authority-signer.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { Refusal } from '../src/protocol/refusals.ts';
import { createLinkKeys } from '../src/server/link/keys.ts';

test('a handshake with a key whose secret cannot be derived is refused, and ends no link', () => {
  let isAway = false;
  const [first, next] = [1, 2].map((byte) => {
    const { publicKey, sign } = signerFromSeed(Buffer.alloc(32, byte));
    return {
      publicKey,
      sign(text: string | Uint8Array) {
        if (isAway) throw new Refusal('signer_unavailable');
        return sign(text);
      },
    };
  }) as [ReturnType<typeof signerFromSeed>, ReturnType<typeof signerFromSeed>];
  const { publicKey } = first;
  const signer = createAuthoritySigner(
    heldHere(() => [first, next]),
    { publicKey, keyId: publicKey },
  );
  const genesis = { network_name: 'alpha', root_public_key: 'root' } as GenesisBlock;
  const keys = createLinkKeys({
    signer,
    genesis,
    publisher: { follow: () => undefined },
    elapsed: () => 0,
  });
  assert.equal(keys.accepted(next.publicKey), null, 'it does not sign yet');
  isAway = true;
  signer.use([
    { from: -Infinity, current: publicKey, previous: null },
    { from: 1, current: next.publicKey, previous: null },
  ]);
  assert.equal(keys.accepted(next.publicKey), null);
  assert.ok(keys.isAccepted(next.publicKey) && !keys.isAccepted(publicKey));
  assert.deepEqual(
    keys.offered().map((key) => key.publicKey),
    [publicKey],
    'what was derived before',
  );
  isAway = false;
  assert.equal(keys.accepted(next.publicKey)?.length, 32);
  assert.equal(keys.accepted('a stranger'), null);
  assert.equal(keys.offered()[0]?.publicKey, next.publicKey);
});
