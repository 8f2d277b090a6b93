/**
 * A succession in a running authority: activated, rolled back, finished, after a theft, and across restarts
 * [authority-keys-9].
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { keyFileText } from '../src/base/keys/key-file.ts';
import { followChain } from '../src/protocol/records/authority-chain.ts';
import { type GenesisBlock, genesisDigest } from '../src/protocol/records/genesis.ts';
import { entriesDigest } from '../src/protocol/records/revocation-list-delta.ts';
import { signedText } from '../src/protocol/records/signed-record.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { TOOLS } from './support/authority-chain.ts';
import { HOUR, MINUTE, REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { scratchFolder } from './support/folders.ts';
import {
  auditEvents,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
} from './support/requests.ts';
import { signersOf } from './support/signing.ts';
import {
  activate,
  activated,
  DAY,
  keyIn,
  keyStates,
  stage,
  step,
  succession,
} from './support/successions.ts';
import { attest, issued, post, recognize } from './support/trust.ts';

async function revoke(na: TestAuthority, certId: string): Promise<void> {
  const answer = await operate(na, '/admin/revoke', { cert_id: certId, reason: 'superseded' });
  assert.equal(outcome(answer), '200');
}

/** What the authority serves now, and which keys have signed it. */
async function served(na: TestAuthority, keys: readonly string[]) {
  const [genesis, sovereign, crl, policy, feed] = await Promise.all(
    ['/genesis', '/sovereign.json', '/crl', '/policy', '/sovereign-revocation-feed'].map(
      async (path) => (await get(na, path)).body,
    ),
  );
  const token = await invite(na);
  const { body: certificate } = await nodeRequest(na, '/join', newKey(), { invite_token: token });
  const attestation = await issued(attest(na));
  return {
    genesis: genesis.network_authority.public_key as string,
    sovereign: sovereign.network_authority.public_key as string,
    crl: [crl.issuer, signersOf(crl, keys)],
    policy: [policy.issued_by, signersOf(policy, keys)],
    feed: [feed.issued_by, signersOf(feed, keys)],
    certificate: [certificate.issued_by, signersOf(certificate, keys)],
    attestation: [attestation.issued_by, signersOf(attestation, keys)],
  };
}

function servedBy(current: string, ...others: string[]) {
  const signed = [current, [current, ...others]];
  return {
    genesis: current,
    sovereign: current,
    crl: signed,
    policy: signed,
    feed: signed,
    certificate: signed,
    attestation: signed,
  };
}

for (const listThreadFrom of [1000, 1]) {
  test(`a planned succession, with lists ${listThreadFrom === 1 ? 'on' : 'off'} the list thread`, async () => {
    await using na = await startTestAuthority({ listThreadFrom });
    const old = na.audience;
    const early = await joinedNode(na);
    const attested = await issued(attest(na));
    const treaty = await issued(recognize(na));
    await revoke(na, (await joinedNode(na)).certId);
    await get(na, '/policy');
    const before = (await get(na, '/crl')).body;
    assert.deepEqual(await served(na, [old]), servedBy(old));

    const signed = await succession(na, { activatesIn: HOUR });
    const { to_key: next } = signed.statement;
    const keys = [old, next];
    assert.equal((await stage(na, signed)).body.key_held, true);
    const tooEarly = await step(na, 'activate');
    assert.equal(outcome(tooEarly), '409 activation_too_early');
    assert.equal(tooEarly.body.error.details.activates_at, signed.statement.activates_at);
    assert.deepEqual(await served(na, keys), servedBy(old));

    na.clock.advance(HOUR);
    await activated(na);
    assert.deepEqual(await keyStates(na), [
      [old, 'previous'],
      [next, 'current'],
    ]);
    assert.deepEqual(await served(na, keys), servedBy(next, old));
    const crl = (await get(na, '/crl')).body;
    assert.equal(crl.sequence, before.sequence + 1);
    assert.deepEqual(crl.revoked_certificates, before.revoked_certificates);
    assert.equal(outcome(await step(na, 'activate')), '409 succession_not_staged');

    // The record has the same id, and the signatures of both keys.
    const again = (await get(na, `/attestations/${attested.attestation_id}`)).body.attestation;
    assert.deepEqual(signersOf(again, keys), [next, old]);
    assert.equal(again.attestation_id, attested.attestation_id);
    const path = `/recognition-treaties/${treaty.treaty_id}`;
    assert.deepEqual(signersOf((await get(na, path)).body.treaty, keys), [next, old]);
    const [inGraph] = (await get(na, '/recognition-graph')).body.active_treaties;
    assert.deepEqual(signersOf(inGraph, keys), [old], 'as it was issued');

    // New entries name the new key, and old ones keep theirs.
    await revoke(na, (await joinedNode(na)).certId);
    const { body: longer } = await get(na, '/crl');
    const entries: { issuer: string }[] = longer.revoked_certificates;
    assert.deepEqual(
      entries.map(({ issuer }) => issuer),
      [old, next],
    );
    na.clock.advance(2000);
    const { body: bulletin } = await get(na, '/bulletin');
    assert.equal(bulletin.crl_digest, entriesDigest(next, longer.revoked_certificates, SHA256));
    assert.equal(bulletin.genesis_digest, genesisDigest(signed.genesis, SHA256));
    assert.equal(bulletin.signature.key_id, old);
    const delta = (await get(na, `/crl?since=${before.sequence}`)).body;
    assert.equal(delta.issuer, next);
    assert.equal(delta.added.length, 1);

    // Nodes and operators continue under the key that they know.
    assert.equal(outcome(await heartbeat(na, early)), '200');
    const renewed = { ...na, audience: next };
    assert.equal(outcome(await operate(renewed, '/admin/invite')), '200');

    await using restarted = await na.restart();
    assert.deepEqual(await served(restarted, keys), servedBy(next, old));
    assert.deepEqual((await get(restarted, '/crl')).body.revoked_certificates, entries);

    // One node has not followed.
    const refused = await step(restarted, 'finish');
    assert.equal(outcome(refused), '409 nodes_have_not_followed');
    const { count } = refused.body.error.details;
    assert.equal(
      outcome(await step(restarted, 'finish', { despite: count + 1 })),
      '409 nodes_have_not_followed',
    );
    assert.equal(existsSync(join(na.dataDir, 'keys/na.next.key')), true);
    const finished = await step(restarted, 'finish', { despite: count });
    assert.equal(outcome(finished), '200');
    assert.deepEqual([finished.body.public_key, finished.body.state], [old, 'retired']);
    assert.deepEqual(await keyStates(restarted), [
      [old, 'retired'],
      [next, 'current'],
    ]);
    assert.deepEqual(await served(restarted, keys), servedBy(next));
    assert.equal(outcome(await step(restarted, 'finish')), '409 no_overlap');
    const gone = await step(restarted, 'roll-back');
    assert.equal(gone.body.error.details.cause, 'overlap_ended');

    // The files are those of the next key, so the next start needs nothing else.
    assert.equal(existsSync(join(na.dataDir, 'keys/na.next.key')), false);
    assert.equal(keyIn(na.dataDir, 'na.key').publicKey, next);
    const file = JSON.parse(readFileSync(join(na.dataDir, 'genesis.json'), 'utf8')) as GenesisBlock;
    assert.deepEqual(file, signed.genesis);
    await using last = await restarted.restart();
    assert.deepEqual(await served(last, keys), servedBy(next));
    assert.equal(last.audience, next);

    // The second succession of the network.
    last.clock.advance(HOUR);
    const second = await succession(last, { activatesIn: MINUTE });
    assert.equal(second.statement.sequence, 2);
    assert.equal(outcome(await stage(last, second)), '200');
  });
}

test('a rollback within the overlap returns to the former key, and sequences continue', async () => {
  await using na = await startTestAuthority();
  const old = na.audience;
  await get(na, '/policy');
  assert.equal((await step(na, 'roll-back')).body.error.details.cause, 'no_succession');
  const signed = await succession(na, { activatesIn: 0 });
  const { to_key: next } = signed.statement;
  const keys = [old, next];
  await stage(na, signed);
  await activate(na);
  await revoke(na, (await joinedNode(na)).certId);
  const during = (await get(na, '/crl')).body;
  const published = (await get(na, '/authority-keys')).body.successions;
  assert.equal(published.length, 1, 'the way back is not published');

  // Another succession is staged, based on the one that is rolled back.
  const other = await succession(na, {
    activatesIn: HOUR,
    to: newKey(),
    from: keyIn(na.dataDir, 'na.next.key'),
  });
  assert.equal(outcome(await stage(na, other)), '200');
  await using na2 = await na.restart();
  const returned = await step(na2, 'roll-back');
  assert.equal(outcome(returned), '200');
  assert.deepEqual([returned.body.public_key, returned.body.kind], [old, 'roll_back']);
  assert.deepEqual(await keyStates(na2), [
    [old, 'current'],
    [next, 'previous'],
  ]);
  assert.deepEqual(await served(na2, keys), servedBy(old, next));
  const crl = (await get(na2, '/crl')).body;
  assert.equal(crl.sequence, during.sequence + 1);
  await revoke(na2, (await joinedNode(na2)).certId);
  const entries: { issuer: string }[] = (await get(na2, '/crl')).body.revoked_certificates;
  assert.deepEqual(
    entries.map(({ issuer }) => issuer),
    [next, old],
  );
  const { successions } = (await get(na2, '/authority-keys')).body;
  for (const trusted of [{ authorityKey: old }, { rootKey: signed.statement.root_public_key }]) {
    const pin = { networkName: 'alpha', trusted };
    const followed = followChain(pin, { successions }, na2.clock.now(), TOOLS);
    assert.equal(followed.refusal === null && followed.currentKey, old);
  }
  assert.equal((await step(na2, 'roll-back')).body.error.details.cause, 'rolled_back');
  assert.equal(
    (await stage(na2, signed)).body.error.details.cause,
    'key_used_before',
    'the succession cannot be staged again',
  );

  // The overlap ends by itself, and the rolled-back key is destroyed.
  await using na3 = await na2.restart();
  assert.deepEqual(await served(na3, keys), servedBy(old, next));
  na3.clock.advance(15 * DAY);
  await na3.keepKeys();
  assert.deepEqual(await keyStates(na3), [
    [old, 'current'],
    [next, 'retired'],
  ]);
  assert.deepEqual(await served(na3, keys), servedBy(old));
  assert.equal(existsSync(join(na.dataDir, 'keys/na.next.key')), false);
  assert.equal(keyIn(na.dataDir, 'na.key').publicKey, old);
  await using na4 = await na3.restart();
  assert.deepEqual(await served(na4, keys), servedBy(old));
  assert.equal((await step(na4, 'roll-back')).body.error.details.cause, 'rolled_back');
  const third = await succession(na4, { activatesIn: HOUR });
  assert.equal(third.statement.sequence, 3);
  assert.equal(outcome(await stage(na4, third)), '200');
});

test('after a theft the next key signs alone, at once, and the stolen one is destroyed', async () => {
  await using na = await startTestAuthority();
  const old = na.audience;
  const attested = await issued(attest(na));
  await get(na, '/policy');
  const signed = await succession(na, { kind: 'compromise' });
  const { to_key: next } = signed.statement;
  const keys = [old, next];
  assert.equal(outcome(await stage(na, signed)), '200');
  const empty = '/sovereign-revocation-feed?issuer_sovereign_id=elsewhere';
  const { body: emptyFeed } = await get(na, empty);
  await na.keepKeys();
  assert.deepEqual(await keyStates(na), [
    [old, 'distrusted'],
    [next, 'current'],
  ]);
  assert.deepEqual(await served(na, keys), servedBy(next));
  const { body: emptyFeedNow } = await get(na, empty);
  assert.equal(signedText(emptyFeedNow), signedText(emptyFeed), 'sequence 0 keeps its content');
  assert.deepEqual(signersOf(emptyFeedNow, keys), [next]);
  const again = (await get(na, `/attestations/${attested.attestation_id}`)).body.attestation;
  assert.deepEqual(signersOf(again, keys), [next]);
  const history = await operate(na, '/admin/policy/history', {}, { method: 'GET' });
  assert.deepEqual(
    history.body.versions.map(({ policy }: { policy: JsonObject }) => signersOf(policy, keys)),
    [[next]],
  );
  assert.equal((await step(na, 'roll-back')).body.error.details.cause, 'compromise');
  assert.equal(outcome(await step(na, 'finish')), '409 no_overlap');
  assert.equal(keyIn(na.dataDir, 'na.key').publicKey, next);
  assert.deepEqual(
    auditEvents(na)
      .filter(({ type }) => type.startsWith('authority_'))
      .map(({ type, details }) => [type, 'remote_addr' in details]),
    [
      ['authority_succession_staged', true],
      ['authority_key_activated', false],
    ],
  );
  const { recent_changes } = (await get(na, '/dashboard.json')).body;
  const activated = recent_changes.find(
    ({ event_type }: { event_type: string }) => event_type === 'authority_key_activated',
  );
  assert.deepEqual(activated.details, { sequence: 1, kind: 'compromise' });
  await using restarted = await na.restart();
  assert.deepEqual(await served(restarted, keys), servedBy(next));
});

const DECISION = {
  source_sovereign_id: 'alpha',
  target_sovereign_id: 'beta',
  verdict: 'allow',
  reason: 'active_treaty_path',
  requested_roles: ['role:client'],
  trusted: true,
  trust_path: [{ from: 'alpha', to: 'beta', status: 'active', treaty_id: 't-1' }],
  hop_count: 2,
  signals: [],
  evaluated_at: '2026-01-15T12:00:00+00:00',
};

test('what a retired key has signed still counts, and what a stolen one has does not', async () => {
  await using na = await startTestAuthority();
  const evidence = async (): Promise<JsonObject> =>
    (await operate(na, '/admin/trust-evidence', { decision: DECISION })).body;
  const judged = async (given: JsonObject) =>
    (await post(na, '/trust-evidence/verify', { evidence: given })).body;
  const first = await evidence();
  await stage(na, await succession(na));
  await activate(na);
  assert.equal(outcome(await step(na, 'finish')), '200');
  const second = await evidence();
  for (const given of [first, second]) assert.equal((await judged(given)).accepted, true);
  na.clock.advance(HOUR);
  await stage(na, await succession(na, { kind: 'compromise' }));
  await na.keepKeys();
  assert.equal((await judged(first)).accepted, true);
  assert.equal((await judged(second)).accepted, false);
});

test('the command line stages, cancels, activates, rolls back and finishes', async () => {
  await using na = await startTestAuthority();
  const folder = scratchFolder();
  await using _ = folder;
  const connection = ['--data-dir', na.dataDir, '--url', na.url];
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(['authority-key', ...args, ...connection]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const failing = async (...args: string[]) => {
    const ended = await runCommand(['authority-key', ...args, ...connection]);
    assert.equal(ended.code, 4, ended.stderr);
    return ended;
  };
  // Within the tolerance of the command line, which uses the time of this machine.
  const signed = await succession(na, { activatesIn: MINUTE });
  const { from_key, to_key } = signed.statement;
  const file = join(folder.path, 'succession.json');
  writeFileSync(file, JSON.stringify(signed));
  assert.match(await run('stage', file), new RegExp(`${escaped(to_key)} is staged`));
  assert.match(await run('cancel'), new RegExp(`${escaped(to_key)} is not staged any more`));
  await run('stage', file);
  na.clock.advance(MINUTE);
  await activated(na);
  await joinedNode(na).then((node) => heartbeat(na, node));
  const { stderr: laggards } = await failing('finish');
  assert.match(laggards, /\(409 nodes_have_not_followed: 1, request /);
  assert.match(
    laggards,
    /which mesh-na authority-key status names, or finish despite them with their number/,
  );
  assert.match(await run('roll-back'), new RegExp(`${escaped(from_key)} is current again`));
  assert.match(await run('finish'), new RegExp(`${escaped(to_key)} signs no more`));
  const { stderr: used } = await failing('stage', file);
  assert.match(used, /\(422 succession_rejected: key_used_before, request /);
  assert.match(used, /Its next key \S+ already is, or was, the authority's; prepare a succession/);
});

function escaped(key: string): string {
  return key.replace(/[+/]/g, '\\$&');
}

test('what came due while the authority was down happens at its start', async () => {
  await using na = await startTestAuthority();
  const old = na.audience;
  const signed = await succession(na, { activatesIn: HOUR, overlap: DAY });
  const { to_key: next } = signed.statement;
  await stage(na, signed);
  await na.stop();
  na.clock.advance(2 * HOUR);
  await using second = await na.restart();
  assert.deepEqual(await served(second, [old, next]), servedBy(next, old));
  await second.stop();
  na.clock.advance(2 * DAY);
  await using third = await second.restart();
  assert.deepEqual(await served(third, [old, next]), servedBy(next));
  assert.equal(third.audience, old, 'the files are replaced during the start');
  assert.equal(keyIn(na.dataDir, 'na.key').publicKey, next);

  // A crash after the genesis block was replaced, but before the key file was.
  await third.stop();
  const folder = (name: string) => join(na.dataDir, 'keys', name);
  renameSync(folder('na.key'), folder('na.next.key'));
  writeFileSync(
    folder('na.key'),
    keyFileText({ kind: 'na private key', keyId: '', key: Buffer.alloc(32, 9) }),
    { mode: 0o600 },
  );
  await using fourth = await third.restart();
  assert.deepEqual(await served(fourth, [old, next]), servedBy(next));
  assert.equal(keyIn(na.dataDir, 'na.key').publicKey, next);
});

test('a missing key is not activated, and the authority reports it', async () => {
  await using na = await startTestAuthority();
  const to = newKey();
  const staged = await stage(na, await succession(na, { to }));
  assert.equal(staged.body.key_held, false);
  const before = (await get(na, '/crl')).text;
  assert.equal(outcome(await step(na, 'activate')), '409 authority_key_not_held');
  await na.keepKeys();
  assert.equal((await get(na, '/crl')).text, before);
  assert.deepEqual(await keyStates(na), [
    [na.audience, 'current'],
    [to.publicKey, 'next'],
  ]);
  await na.keepKeys();
  const said = na.logLines.filter((line) => line.includes('authority_key_not_held'));
  assert.equal(said.length, 1, 'once an hour');
  await using again = await na.restart();
  assert.deepEqual((await keyStates(again))[0], [na.audience, 'current']);
});

test('an overlap ends at its time although the key that is due next is missing', async () => {
  await using na = await startTestAuthority();
  const { publicKey: first } = keyIn(na.dataDir, 'na.key');
  await stage(na, await succession(na, { overlap: DAY }));
  await activate(na);
  const from = keyIn(na.dataDir, 'na.next.key');
  const to = newKey();
  na.clock.advance(1000);
  await stage(na, await succession(na, { from, to, kind: 'compromise' }));
  const document = (await get(na, '/authority-keys')).body;
  const trusted = { rootKey: document.root_public_key };
  const followed = followChain({ networkName: 'alpha', trusted }, document, na.clock.now(), TOOLS);
  assert.ok(followed.refusal === null);
  assert.deepEqual(document.keys, followed.keys, 'as its readers derive them');
  na.clock.advance(DAY);
  await na.keepKeys();
  assert.deepEqual(await keyStates(na), [
    [first, 'retired'],
    [from.publicKey, 'current'],
    [to.publicKey, 'next'],
  ]);
});

test('a start is refused if a key that must sign is missing', async () => {
  await using na = await startTestAuthority();
  await stage(na, await succession(na));
  await activate(na);
  await na.stop();
  const [file, away] = ['na.next.key', 'away.key'].map((name) => join(na.dataDir, 'keys', name));
  renameSync(String(file), String(away));
  await assert.rejects(na.restart(), /private key of the authority key .* is not here/);
  renameSync(String(away), String(file));
  await using again = await na.restart();
  assert.equal((await keyStates(again)).length, 2);
});

// `doctor` follows the authority through a planned change of its key, and accuses nobody.

test('a planned change of the key is no man in the middle, and does not touch the first policy', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const seen = async () => {
    const args = ['doctor', '--data-dir', na.dataDir, '--url', na.url, '--json'];
    const { stdout } = await runCommand(args);
    const { checks } = JSON.parse(stdout) as { checks: { check: string; outcome: string }[] };
    return ['network', 'first_policy', 'succession', 'crl', 'feed'].map((name) =>
      checks.filter(({ check }) => check === name).map((each) => `${name} ${each.outcome}`),
    );
  };
  const well = ['network', 'first_policy', 'succession', 'crl', 'feed'].map((n) => [`${n} ok`]);
  assert.deepEqual(await seen(), well, 'before');
  const signed = await succession(na, { kind: 'planned' });
  assert.equal(outcome(await stage(na, signed)), '200');
  await activated(na);
  assert.deepEqual(await seen(), well, 'in the overlap');
  const operated = { ...na, audience: signed.statement.to_key };
  assert.equal(outcome(await step(operated, 'finish')), '200');
  assert.deepEqual(await seen(), well, 'afterward');
});
