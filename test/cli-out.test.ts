/** Where commands put what they are given only once: no file is lost, and no record. */
import assert from 'node:assert/strict';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, suite, test } from 'node:test';
import { EXIT, outcomeOf } from '../src/cli/exit-codes.ts';
import { buildProgram } from '../src/cli/program.ts';
import { runProgram } from './support/child-server.ts';
import { type HostileAuthority, startHostileAuthority } from './support/hostile-authority.ts';

const FEED = {
  feed_id: 'feed-1',
  issuer_sovereign_id: 'alpha',
  sequence: 0,
  issued_at: '2026-01-01T00:00:00Z',
  revoked_attestation_ids: [],
  revocation_reasons: {},
  issued_by: 'na',
  signatures: [],
};

const scratch = mkdtempSync(join(tmpdir(), 'mesh-na-out-'));
let server: HostileAuthority;
let folder: string;

before(async () => {
  server = await startHostileAuthority();
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});
beforeEach(() => {
  server.answers = { 'GET /sovereign-revocation-feed': FEED };
  server.asked.length = 0;
  folder = mkdtempSync(join(scratch, 'test-'));
});

const exported = (out: string, ...more: string[]) => [
  ...['feed', 'export', '--url', server.url, '--out', out, ...more],
];

/** How a command ends that fails; it prints nothing to standard output. */
async function endOf(args: readonly string[]) {
  try {
    await buildProgram().parseAsync([...args], { from: 'user' });
  } catch (error) {
    return outcomeOf(error);
  }
  throw new Error(`${args.join(' ')} has not failed`);
}

suite('--out', () => {
  test('replaces a file only by force, and then the one that a link leads to', async () => {
    const [file, link] = [join(folder, 'feed.json'), join(folder, 'link.json')];
    writeFileSync(file, 'precious');
    symlinkSync(file, link);
    const refused = await endOf(exported(link));
    assert.equal(refused.exit, EXIT.unusable);
    assert.match(refused.message, /link\.json exists; --force overwrites it$/);
    assert.equal(server.asked.length, 0, 'nothing was asked for');
    assert.equal(readFileSync(file, 'utf8'), 'precious');
    await buildProgram().parseAsync(exported(link, '--force'), { from: 'user' });
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), FEED);
    assert.deepEqual(readdirSync(folder).sort(), ['feed.json', 'link.json'], 'no draft is left');
  });

  test('is refused before anything is asked for, where it cannot be written', async () => {
    for (const out of [join(folder, 'absent', 'feed.json'), folder]) {
      assert.equal((await endOf(exported(out))).exit, EXIT.unusable);
    }
    assert.equal(server.asked.length, 0);
  });

  test('prints the record when it cannot be written after all', async () => {
    const { code, stdout, stderr } = await runProgram(exported('/dev/full'));
    assert.equal(code, EXIT.unusable);
    assert.deepEqual(JSON.parse(stdout), FEED);
    assert.match(
      stderr,
      /is exported, but \/dev\/full cannot be written \(ENOSPC\); it is on stand/,
    );
  });
});
