/**
 * The first step of `npm test`: installs what the tests need and npm does not bring, which is Chromium,
 * or ends with the command that does.
 */
import { spawnSync } from 'node:child_process';
import { findChromium } from './support/chromium.ts';

const INSTALL = ['apt-get', 'install', '--yes', '--no-install-recommends', 'chromium'];
const HELP = `Tests of pages need Chromium. Install it, or set CHROMIUM_PATH to that of a Chromium or Chrome:
  sudo apt-get install --no-install-recommends chromium
`;

if (findChromium(process.env) === null) process.exitCode = install() ? 0 : 1;

function install(): boolean {
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '--non-interactive'];
  if (!succeeds([...asRoot, 'apt-get', '--version'], 'ignore')) return refuse();
  process.stdout.write('Tests of pages need Chromium: installing it from the distribution.\n');
  succeeds([...asRoot, 'apt-get', 'update'], 'inherit');
  const isInstalled = succeeds([...asRoot, ...INSTALL], 'inherit');
  return (isInstalled && findChromium(process.env) !== null) || refuse();
}

function refuse(): false {
  process.stderr.write(HELP);
  return false;
}

function succeeds([command = '', ...args]: readonly string[], stdio: 'ignore' | 'inherit') {
  return spawnSync(command, args, { stdio }).status === 0;
}
