/**
 * A succession whose keys are in a signer: it gets the next key through a restart, and both keys sign until the end
 * [signer-3].
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { nextKey } from '../src/cli/authority-key/next-key.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import {
  get,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
} from './support/requests.ts';
import { signedNetwork, startSigner } from './support/signer.ts';
import { signersOf } from './support/signers.ts';
import { activate, stage, step, succession } from './support/successions.ts';
import { until } from './support/until.ts';

for (const listThreadFrom of [1000, 1]) {
  const where = listThreadFrom === 1 ? 'the thread for long lists' : 'its own thread';
  test(`a succession with a signer, lists on ${where}`, async () => {
    const { dataDir, address, keyFile } = signedNetwork();
    const { signer: to, file: nextFile } = nextKey(keyFile, () => randomBytes(32));
    const from = signerFromSeed(readKeyFile(keyFile));
    let signer = await startSigner({ keyFile, address });
    let na = await startTestAuthority({ dataDir, flags: { signer: address }, listThreadFrom });
    const enrollment = async () => (await get(na, '/readyz')).body.enrollment;
    const restartSigner = async (file: string, ...args: string[]) => {
      await signer.end('SIGKILL');
      await until(async () => (await enrollment()) === 'signer_unavailable');
      signer = await startSigner({ keyFile: file, address }, args);
    };
    const isOpen = () => until(async () => (await enrollment()) === 'open');
    try {
      const node = await joinedNode(na);
      const signed = await succession(na, { activatesIn: HOUR, from, to });
      assert.equal((await stage(na, signed)).body.key_held, false);
      na.clock.advance(HOUR);
      assert.equal(outcome(await step(na, 'activate')), '409 authority_key_not_held');

      await restartSigner(keyFile, '--next-key', nextFile);
      await isOpen();
      await activate(na);
      const both = [to.publicKey, from.publicKey];
      const served = async () => {
        const token = await invite(na);
        const joined = await nodeRequest(na, '/join', newKey(), { invite_token: token });
        assert.equal(outcome(joined), '200');
        const crl = (await get(na, '/crl')).body;
        const feed = (await get(na, '/sovereign-revocation-feed')).body;
        return [joined.body, crl, feed].map((record) => signersOf(record, both));
      };
      assert.deepEqual(await served(), [both, both, both]);
      const doomed = { cert_id: node.certId, reason: 'superseded' };
      assert.equal(outcome(await operate(na, '/admin/revoke', doomed)), '200');
      assert.deepEqual(await served(), [both, both, both]);

      // One key is not enough while both sign.
      await restartSigner(nextFile);
      const other = await nodeRequest(na, '/join', newKey(), { invite_token: await invite(na) });
      assert.equal(outcome(other), '503 signer_unavailable');
      await signer.end('SIGKILL');
      signer = await startSigner({ keyFile, address }, ['--next-key', nextFile]);
      await isOpen();

      na = await na.restart();
      assert.deepEqual(await served(), [both, both, both]);
      assert.equal(outcome(await step(na, 'finish')), '200');
      const alone = [to.publicKey];
      assert.deepEqual(await served(), [alone, alone, alone]);
      await restartSigner(nextFile);
      await isOpen();
      assert.deepEqual(await served(), [alone, alone, alone]);
      na = await na.restart();
      assert.deepEqual(await served(), [alone, alone, alone]);
    } finally {
      await na.stop();
      await signer.end('SIGTERM');
    }
  });
}
