/** Which authority a command asks: that of an option, then of a variable, then of a profile. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { joinedNode } from './support/requests.ts';
import { sharedScratch } from './support/shared-scratch.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = sharedScratch();

const NOWHERE = 'http://127.0.0.1:1';
const keyFile = join(na.dataDir, 'keys', 'operator-privileged.key');
const environment = { XDG_CONFIG_HOME: scratch, MESH_DATA_DIR: join(scratch, 'no-data') };

async function connect(url: string, profile: string) {
  const saved = await runCommand(
    [
      ...['connect', url, '--key-file', keyFile, '--authority-key', na.audience],
      ...['--profile', profile, '--offline'],
    ],
    environment,
  );
  assert.equal(saved.code, 0, saved.stderr);
}

test('an option comes before a variable, and a variable before the default profile', async () => {
  await joinedNode(na);
  await connect(NOWHERE, 'default');
  await connect(na.url, 'here');
  const missing = join(scratch, 'missing.pem');
  for (const [args, variables, expected] of [
    [[], {}, EXIT.unreachable],
    [[], { MESH_URL: na.url }, EXIT.done],
    [['--url', na.url], { MESH_URL: NOWHERE }, EXIT.done],
    [['--url', NOWHERE], { MESH_URL: na.url }, EXIT.unreachable],
    // A profile that is named by an option is one.
    [['--profile', 'here'], { MESH_URL: NOWHERE }, EXIT.done],
    [[], { MESH_PROFILE: 'here' }, EXIT.done],
    [[], { MESH_PROFILE: 'here', MESH_URL: NOWHERE }, EXIT.unreachable],
    [[], { MESH_URL: na.url, MESH_CA: missing }, EXIT.unusable],
    [[], { MESH_URL: na.url, MESH_OPERATOR_KEY_FILE: missing }, EXIT.unusable],
  ] as const) {
    const given = { ...environment, ...variables };
    const { code, stderr } = await runCommand(['node', 'list', ...args], given);
    assert.equal(code, expected, `${args.join(' ')} ${JSON.stringify(variables)}: ${stderr}`);
  }
});

test('an empty variable is none', async () => {
  await connect(na.url, 'default');
  const empty = {
    ...{ MESH_URL: '', MESH_CA: '', MESH_PROFILE: '', MESH_OPERATOR_KEY_ID: '' },
    ...{ MESH_OPERATOR_KEY_FILE: '', SSH_AUTH_SOCK: '' },
  };
  const { code, stderr } = await runCommand(['node', 'list'], { ...environment, ...empty });
  assert.equal(code, EXIT.done, stderr);
  const agent = await runCommand(['node', 'list', '--agent'], { ...environment, ...empty });
  assert.match(agent.stderr, /--agent needs SSH_AUTH_SOCK/);
});
