/** The delegation of the root key is extended offline, and served after the next start. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { genesisProblem } from '../src/client/network-trust.ts';
import {
  type GenesisBlock,
  isSignedByRoot,
  readGenesisBlock,
} from '../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import { startTestAuthority } from './support/authority.ts';
import { runCommand } from './support/commands.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { get, invite, joinedNode, newKey } from './support/requests.ts';

test('mesh-na genesis renew extends the delegation, with the root key alone', async (t) => {
  const { folder } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'genesis.json');
  const read = () => readGenesisBlock(JSON.parse(readFileSync(file, 'utf8')));
  const before = read();
  {
    await using na = await startTestAuthority({ dataDir: folder });
    await joinedNode(na);
  }
  const renew = (key: string, ...more: string[]) => {
    const rootKey = ['--root-key', join(folder, 'keys', `${key}.key`)];
    return runCommand(['genesis', 'renew', ...rootKey, '--genesis', file, '--json', ...more]);
  };

  const wrong = await renew('na');
  assert.equal(wrong.code, 3);
  assert.match(wrong.stderr, /is not the root key/);
  assert.deepEqual(read(), before);

  const done = await renew('root', '--days', '400');
  assert.equal(done.code, 0, done.stderr);
  const renewed = read();
  assert.ok(before !== null && renewed !== null && isSignedByRoot(renewed, verifySignature));
  const { valid_to } = renewed.network_authority;
  assert.ok(Date.parse(valid_to) > Date.now() + 399 * 86_400_000);
  const changed = { ...before, signatures: renewed.signatures };
  assert.deepEqual(renewed, {
    ...changed,
    network_authority: { ...before.network_authority, valid_to },
  });

  const shorter = await renew('root', '--days', '30');
  assert.equal(shorter.code, 3);
  assert.match(shorter.stderr, /lasts until/);

  await using na = await startTestAuthority({ dataDir: folder });
  assert.equal((await get(na, '/genesis')).body.network_authority.valid_to, valid_to);
  assert.match(await invite(na), /^[0-9a-f]{48}$/);
});

test('a node accepts an extended delegation, but not a shorter one or one by another key', () => {
  const root = newKey();
  const genesisUntil = (end: string, key = 'A'.repeat(43)) => {
    const genesis = readGenesisBlock({
      network_name: 'alpha',
      network_version: 'v0.1',
      root_public_key: root.publicKey,
      network_authority: {
        public_key: `${key}=`,
        valid_from: '2026-01-01T00:00:00Z',
        valid_to: end,
      },
      policy_manifest: { hash: 'sha256:00' },
    });
    assert.ok(genesis !== null);
    return signRecord(genesis, soleSigner(root));
  };
  const now = Date.parse('2026-02-01T00:00:00Z');
  const problem = (offered: GenesisBlock, held: GenesisBlock) =>
    genesisProblem(offered, { rootKey: root.publicKey, genesis: held }, now);
  const [short, long] = ['2026-04-01T00:00:00Z', '2027-04-01T00:00:00Z'].map((end) =>
    genesisUntil(end),
  ) as [GenesisBlock, GenesisBlock];
  assert.equal(problem(long, short), null);
  assert.match(String(problem(short, long)), /older/);
  assert.match(
    String(problem(genesisUntil('2028-01-01T00:00:00Z', 'B'.repeat(43)), long)),
    /older/,
  );
});
