/**
 * `npm run test:platforms`: runs the tests of `npm test`, or only the named ones, in a clean Debian 13, where it first
 * installs what tests need, with each version of Node.js that is newer than the one most developers have. With
 * `--newest`, it runs what can differ there, with the newest version alone.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { debianRoot, imageNode } from '../tools/release/fetched.ts';
import { runtimes } from './support/client-package.ts';
import { unpackRoot } from './support/debian-root.ts';
import { PROJECT_PATH } from './support/project.ts';

const args = process.argv.slice(2);
const newest = join(imageNode(PROJECT_PATH), 'bin/node');
/** The tests look for their files where they were compiled. */
const CHECKOUT = PROJECT_PATH;

execFileSync('npm', ['run', '-s', 'build:tests'], { cwd: PROJECT_PATH, stdio: 'inherit' });
const npm = realpathSync(execFileSync('npm', ['root', '--global'], { encoding: 'utf8' }).trim());
using root = unpackRoot(
  [debianRoot(PROJECT_PATH, 'machine')],
  [
    [PROJECT_PATH, CHECKOUT],
    [npm, '/usr/lib/node_modules'],
  ],
);
const script = `ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm
cd ${CHECKOUT} && node --print 'process.version' && node --import tsx test/prepare.ts &&
  exec node build/test/run.js "$@"`;
for (const node of args.includes('--newest') ? [newest] : [runtimes().node22, newest]) {
  cpSync(node, join(root.path, 'usr/bin/node'));
  const entered = root.entered(['sh', '-c', script, 'sh', ...args]);
  const { status } = spawnSync(entered.command, entered.args, {
    env: entered.env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) process.exitCode = 1;
}
