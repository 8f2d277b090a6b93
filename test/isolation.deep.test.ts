/** Tests pass regardless of what is in the checkout and of the user's settings. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeCheckout } from './support/checkout.ts';
import { makeNetworkFolder, ownFolder } from './support/folders.ts';
import { PROJECT_PATH } from './support/project.ts';

const scratch = ownFolder();
const checkout = join(scratch, 'checkout');
const home = join(scratch, 'home');

/** One test for each way of running the program and each kind of litter: file and title. */
const KINDS = [
  ['doctor.test.js', 'loads no native code for an authority elsewhere'],
  ['cli-terminal.test.js', 'is as wide as the terminal, with colors that show what is in force'],
  ['ssh-agent.test.js', 'an operator signs with the agent'],
  ['store/postgresql-start.test.js', 'a unix socket is addressed by its folder'],
] as const;

/** What the tests are compiled from, in addition to the sources. */
const TESTED = ['bench', 'test', 'tools'];

/** What `npm start`, a node and an operator leave behind. */
function litter(): void {
  const { folder } = makeNetworkFolder('left-behind');
  cpSync(folder, join(checkout, 'mesh-data'), { recursive: true });
  rmSync(folder, { recursive: true });
  writeFileSync(join(checkout, 'mesh-na.json'), 'not JSON');
  mkdirSync(join(checkout, 'mesh-node'));
  writeFileSync(join(checkout, 'mesh-node', 'node.key'), 'no key');
  for (const config of [join(home, '.config'), join(scratch, 'config')]) {
    mkdirSync(join(config, 'mesh-na', 'profiles'), { recursive: true });
    writeFileSync(join(config, 'mesh-na', 'profiles', 'default.json'), 'no profile');
  }
}

const NOWHERE = 'http://127.0.0.1:1';
const SETTINGS = {
  HOME: home,
  XDG_CONFIG_HOME: join(scratch, 'config'),
  MESH_DATA_DIR: join(checkout, 'mesh-data'),
  MESH_URL: NOWHERE,
  MESH_PROFILE: 'absent',
  MESH_STORE: 'postgresql://nobody@127.0.0.1:1/none',
  MESH_THREADS: 'many',
  HOST: 'nowhere.invalid',
  PORT: 'none',
  PGHOST: 'nowhere.invalid',
  PGSSLMODE: 'verify-full',
  PGOPTIONS: '-c default_transaction_read_only=on',
  SSH_AUTH_SOCK: join(scratch, 'no-agent'),
  NO_COLOR: '1',
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent("process.stderr.write('litter')")}`,
};

test('one file of each kind passes in a checkout, a home and an environment full of litter', async () => {
  makeCheckout(checkout);
  for (const folder of TESTED) {
    cpSync(join(PROJECT_PATH, folder), join(checkout, folder), { recursive: true });
  }
  // From their sources, each process would compile what it loads.
  execFileSync(process.execPath, ['--import', 'tsx', 'test/build.ts'], { cwd: checkout });
  litter();
  const patterns = KINDS.flatMap(([, title]) => ['--test-name-pattern', title]);
  const files = KINDS.map(([file]) => join('build/test', file));
  const args = ['--test', '--test-reporter', 'tap', ...patterns, ...files];
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const printed = await new Promise<string>((resolve) => {
    const options = { cwd: checkout, env: { ...environment, ...SETTINGS } };
    execFile(process.execPath, args, options, (_error, stdout) => resolve(stdout));
  });
  const passed = printed
    .split('\n')
    .filter((line) => /^\s*ok /.test(line) && !line.includes('# SKIP'))
    .join('\n');
  for (const [, title] of KINDS) assert.ok(passed.includes(` - ${title}`), printed);
  assert.match(printed, /^# fail 0$/m, printed);
});
