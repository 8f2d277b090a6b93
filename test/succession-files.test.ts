/** After a succession: files in other places [authority-keys-9], and everything in force, signed again [authority-keys-10]. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { readPrivateKey } from '../src/base/keys/read-key.ts';
import { nextKey } from '../src/cli/authority-key/next-key.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';
import { signersOf } from './support/signing.ts';
import { activated, keyStates, stage, step, succession } from './support/successions.ts';
import { attest, issued, parsed, recognize, revokeAttestation } from './support/trust.ts';

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

test('the next start puts the public key in its place, too, if it could not be put there before', async () => {
  await using folder = networkFolder('alpha');
  const keys = join(folder.path, 'keys');
  const { signer: to, file: nextFile } = nextKey(join(keys, 'na.key'), () => randomBytes(32));
  const publicFile = join(keys, 'na.pub');
  rmSync(publicFile, { force: true });
  mkdirSync(publicFile);
  let na = await startTestAuthority({ dataDir: folder.path });
  await using _ = { [Symbol.asyncDispose]: () => na.stop() };
  const signed = await succession(na, { activatesIn: MINUTE, to });
  assert.equal(outcome(await stage(na, signed)), '200');
  na.clock.advance(MINUTE);
  await activated(na);
  assert.equal(outcome(await step(na, 'finish')), '200');
  assert.match(na.logLines.join(''), /ERROR mesh\.succession .*; the next start tries again/);

  rmSync(publicFile, { recursive: true });
  na = await na.restart();
  assert.equal(signerFromSeed(readPrivateKey(join(keys, 'na.key'))).publicKey, to.publicKey);
  assert.ok(readFileSync(publicFile, 'utf8').includes(to.publicKey));
  assert.deepEqual([existsSync(nextFile), existsSync(join(keys, 'na.next.pub'))], [false, false]);
});

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

// When the authority's key changes, everything in force is served under the keys that sign from then on
// [authority-keys-10].

const ATTESTATIONS = 300;
/** Ten attestations of each issuer. */
const REVOKED = 30;
const TREATIES = 3;
/** The names in which attestations are issued; null stands for the authority's own. */
const ISSUERS = [null, 'beta', 'gamma'];
const BEATS = 10;

/** The records of a list by id, read page by page. */
async function listed(na: TestAuthority, path: string, list: string, member: string, id: string) {
  const records = new Map<string, JsonObject>();
  let next: string | undefined = `${path}?limit=100`;
  while (next !== undefined) {
    const page = parsed(await get(na, next));
    for (const row of page[list] as readonly JsonObject[]) {
      const record = row[member] as JsonObject;
      records.set(String(record[id]), record);
    }
    const { next_cursor: cursor } = page;
    next = cursor === undefined ? cursor : `${path}?cursor=${encodeURIComponent(String(cursor))}`;
  }
  return records;
}

/** The records issued before, as they are served now. */
async function recordsOf(na: TestAuthority) {
  const treaties = [
    '/recognition-treaties',
    'recognition_treaties',
    'treaty',
    'treaty_id',
  ] as const;
  const attestations = ['/attestations', 'attestations', 'attestation', 'attestation_id'] as const;
  const records = new Map([
    ...(await listed(na, ...treaties)),
    ...(await listed(na, ...attestations)),
    ['policy', parsed(await get(na, '/policy'))] as const,
  ]);
  return records;
}

async function listsOf(na: TestAuthority): Promise<readonly JsonObject[]> {
  const feed = '/sovereign-revocation-feed';
  const paths = ISSUERS.map((name) =>
    name === null ? feed : `${feed}?issuer_sovereign_id=${name}`,
  );
  return Promise.all(['/crl', ...paths].map(async (path) => parsed(await get(na, path))));
}

function unsigned({ signatures: _, issued_by: __, ...content }: JsonObject): JsonObject {
  return content;
}

test('a change of the key signs every record and list again, while heartbeats are answered', async () => {
  await using na = await startTestAuthority();
  const old = na.audience;
  const node = await joinedNode(na);
  const attested = await Promise.all(
    Array.from({ length: ATTESTATIONS }, (_, index) => {
      const name = ISSUERS[index % ISSUERS.length];
      return issued(attest(na, name ? { issuer_sovereign_id: name } : {}));
    }),
  );
  for (const { attestation_id: id } of attested.slice(0, REVOKED)) {
    assert.equal(outcome(await revokeAttestation(na, id)), '200');
  }
  for (let index = 0; index < TREATIES; index += 1) await issued(recognize(na));
  const { certId } = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: certId, reason: 'superseded' });
  await get(na, '/policy');
  const before = await recordsOf(na);
  assert.equal(before.size, ATTESTATIONS + TREATIES + 1);
  let lists = await listsOf(na);
  const keys = [old];

  /** Takes a step while heartbeats arrive, and checks that exactly these keys sign afterward. */
  async function change(name: string, signers: readonly string[], body: JsonObject = {}) {
    const [changed, ...beats] = await Promise.all([
      step({ ...na, audience: keys.at(-1) ?? '' }, name, body),
      ...Array.from({ length: BEATS }, () => heartbeat(na, node)),
    ]);
    assert.equal(outcome(changed), '200', name);
    assert.deepEqual(beats.map(outcome), Array(BEATS).fill('200'), name);
    const after = await recordsOf(na);
    assert.deepEqual([...after.keys()], [...before.keys()], name);
    for (const [id, record] of after) {
      assert.deepEqual(signersOf(record, keys), signers, `${name}: ${id}`);
      assert.equal(record.issued_by, keys.at(-1));
      assert.deepEqual(unsigned(record), unsigned(before.get(id) ?? {}), `${name}: ${id}`);
    }
    const changedLists = await listsOf(na);
    for (const [index, list] of changedLists.entries()) {
      assert.deepEqual(signersOf(list, keys), signers, name);
      const { sequence } = lists[index] ?? {};
      assert.equal(Number(list.sequence), Number(sequence) + 1, name);
    }
    lists = changedLists;
  }

  const planned = await succession(na);
  keys.push(planned.statement.to_key);
  assert.equal(outcome(await stage(na, planned)), '200');
  await change('activate', [planned.statement.to_key, old]);
  const refused = await step(na, 'finish');
  const despite = refused.body.error?.details.count ?? 0;
  await change('finish', [planned.statement.to_key], { despite });

  na.clock.advance(HOUR);
  const compromise = await succession(na, { kind: 'compromise' });
  keys.push(compromise.statement.to_key);
  const operated = { ...na, audience: planned.statement.to_key };
  assert.equal(outcome(await stage(operated, compromise)), '200');
  await change('activate', [compromise.statement.to_key]);
});
