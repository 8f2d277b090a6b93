/** A profile follows its authority from the key that it pinned [authority-keys-7]. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { chainOf, FIRST, HOUR, ROOT, START, type Step } from './support/authority-chain.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { scratchFolder } from './support/folders.ts';
import { outcome } from './support/requests.ts';
import { startSuccessionAuthority } from './support/succession-authority.ts';
import { activated, stage, step, succession } from './support/successions.ts';

/** An operator on another machine who knows this key of the authority. */
function operatorOf(scratch: string, url: string, keyFile: string) {
  const config = ['--config-home', scratch];
  return {
    connect: (key: string, ...more: string[]) =>
      runCommand([
        'connect',
        url,
        '--authority-key',
        key,
        '--key-file',
        keyFile,
        ...config,
        ...more,
      ]),
    list: () => runCommand(['node', 'list', '--data-dir', join(scratch, 'nowhere'), ...config]),
    profile: () => readFileSync(join(scratch, 'mesh-na', 'profiles', 'default.json'), 'utf8'),
  };
}

test('a profile follows several changes, even after a theft, and never goes back', async () => {
  await using scratch = scratchFolder();
  // Commands use the real time, so each change must have happened by then.
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const first = na.audience;
  const keyFile = join(na.dataDir, 'keys', 'operator-privileged.key');
  const operator = operatorOf(scratch.path, na.url, keyFile);
  assert.equal((await operator.connect(first)).code, 0);
  let operated = na;
  for (const kind of ['planned', 'planned', 'compromise'] as const) {
    const signed = await succession(operated, { kind });
    assert.equal(outcome(await stage(operated, signed)), '200');
    await activated(operated);
    operated = { ...operated, audience: signed.statement.to_key };
    if (kind === 'planned') assert.equal(outcome(await step(operated, 'finish')), '200');
    const listed = await operator.list();
    assert.equal(listed.code, 0, listed.stderr);
    assert.match(listed.stderr, /^mesh-na: The authority's key was replaced by /);
    assert.equal(JSON.parse(operator.profile()).authority_key, signed.statement.to_key);
    assert.equal((await operator.list()).stderr, '', 'once');
  }
  const learned = JSON.parse(operator.profile());
  assert.equal((await operator.connect(first)).code, 0);
  const again = JSON.parse(operator.profile());
  assert.deepEqual(again, learned, 'a key from before leads to the same authority');
});

test('a profile accepts nothing of a fork, a shorter chain, or an unvouched one', async () => {
  await using scratch = scratchFolder();
  await using na = await startSuccessionAuthority();
  await using keys = await startTestAuthority();
  na.clock.step(Date.now() - na.clock.now());
  na.instead.set('/admin/certificates', () => ({ count: 0, certificates: [] }));
  const keyFile = join(keys.dataDir, 'keys', 'operator-privileged.key');
  const operator = operatorOf(scratch.path, na.url, keyFile);
  const hours = (Date.now() - START) / HOUR;
  const chain = (kind: Step['kind'], ago: number) => chainOf([{ kind, at: hours - ago }]);
  assert.equal((await operator.connect(FIRST.publicKey, '--offline')).code, 0);

  async function assertRefused(why: RegExp): Promise<void> {
    const before = operator.profile();
    const { code, stderr } = await operator.list();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^mesh-na: Profile "default" keeps the authority key \S+=, because /);
    assert.match(stderr, why);
    assert.equal(operator.profile(), before);
  }

  na.successions = chain('compromise', 1);
  await assertRefused(
    /pin the root key of the network\. Run mesh-na connect again with --root-key\.$/m,
  );
  const rooted = await operator.connect(FIRST.publicKey, '--offline', '--root-key', ROOT.publicKey);
  assert.equal(rooted.code, 0, rooted.stderr);
  const [stolen] = na.successions;
  assert.match((await operator.list()).stderr, /because it was compromised/);
  assert.equal(JSON.parse(operator.profile()).authority_key, stolen?.to_key);

  na.successions = chain('compromise', 2);
  await assertRefused(/same sequence as another signed statement; do not use it/);
  na.successions = [];
  await assertRefused(/old copy/);
});
