/** The end of a succession if the genesis block or a key is stored in another place [authority-keys-9]. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { readPrivateKey } from '../src/base/keys/read-key.ts';
import { nextKey } from '../src/cli/authority-key/next-key.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import { get, outcome } from './support/requests.ts';
import { activated, keyStates, stage, step, succession } from './support/successions.ts';

const PLACES = [
  { what: 'genesis block', name: 'genesis.json', flag: 'genesis' },
  { what: 'key', name: 'keys/na.key', flag: 'naPrivateKey' },
] as const;

for (const { what, name, flag } of PLACES) {
  test(`a ${what} in another place is left to the operator, and starts continue to work`, async () => {
    await using folder = networkFolder('alpha');
    await using elsewhere = scratchFolder();
    const { path: dataDir } = folder;
    const place = join(elsewhere.path, flag === 'genesis' ? 'block.json' : 'na.key');
    cpSync(join(dataDir, name), place);
    rmSync(join(dataDir, name));
    const keyFile = flag === 'genesis' ? join(dataDir, 'keys', 'na.key') : place;
    const { signer: to, file: nextFile } = nextKey(keyFile, () => randomBytes(32));
    const from = signerFromSeed(readPrivateKey(keyFile));
    let na = await startTestAuthority({ dataDir, flags: { [flag]: place } });
    await using _ = { [Symbol.asyncDispose]: () => na.stop() };
    const signed = await succession(na, { activatesIn: MINUTE, from, to });
    assert.equal(outcome(await stage(na, signed)), '200');
    na.clock.advance(MINUTE);
    await activated(na);
    assert.equal(outcome(await step(na, 'finish')), '200');
    const log = na.logLines.join('');
    assert.match(log, /WARNING mesh\.succession /);
    assert.equal(signerFromSeed(readPrivateKey(keyFile)).publicKey, from.publicKey, 'is left');
    assert.ok(existsSync(nextFile));

    na = await na.restart();
    const { body: genesis } = await get(na, '/genesis');
    assert.equal(genesis.network_authority.public_key, to.publicKey);
    assert.equal((await get(na, '/crl')).body.issuer, to.publicKey);

    if (flag === 'genesis') {
      // Only the next key is left, but the block names the previous one.
      const kept = readFileSync(keyFile);
      await na.stop();
      cpSync(nextFile, keyFile);
      await assert.rejects(na.restart(), /or configure the genesis block of the key that replaced/);
      writeFileSync(keyFile, kept);
      na = await na.restart();
    }
    if (flag === 'genesis') writeFileSync(place, JSON.stringify(genesis));
    else renameSync(nextFile, keyFile);
    na = await na.restart();
    assert.equal(signerFromSeed(readPrivateKey(keyFile)).publicKey, to.publicKey);
    assert.ok(!existsSync(nextFile));
    assert.doesNotMatch(na.logLines.join(''), /WARNING mesh\.succession /);
    const block = flag === 'genesis' ? place : join(dataDir, 'genesis.json');
    assert.deepEqual(JSON.parse(readFileSync(block, 'utf8')), genesis);
  });
}

test('a start without the previous key is refused during the overlap, and ends the overlap after it', async () => {
  await using folder = networkFolder('alpha');
  const { path: dataDir } = folder;
  const keyFile = join(dataDir, 'keys', 'na.key');
  const { signer: to, file: nextFile } = nextKey(keyFile, () => randomBytes(32));
  let na = await startTestAuthority({ dataDir });
  await using _ = { [Symbol.asyncDispose]: () => na.stop() };
  const from = signerFromSeed(readPrivateKey(keyFile));
  const signed = await succession(na, { activatesIn: MINUTE, overlap: HOUR, from, to });
  assert.equal(outcome(await stage(na, signed)), '200');
  na.clock.advance(MINUTE);
  await activated(na);
  const { body: genesis } = await get(na, '/genesis');
  await na.stop();
  // As if the overlap had ended, but the database had lost that change.
  renameSync(nextFile, keyFile);
  writeFileSync(join(dataDir, 'genesis.json'), JSON.stringify(genesis));
  await assert.rejects(na.restart(), /put its file back, or start after that time$/);

  na.clock.advance(HOUR);
  na = await na.restart();
  const states = (await keyStates(na)).map(([, state]) => state);
  assert.deepEqual(states.sort(), ['current', 'retired']);
  assert.equal((await get(na, '/crl')).body.signatures.length, 1);
});
