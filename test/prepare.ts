/**
 * The first step of `npm test`: installs the programs that tests run but npm does not install, or ends with the command
 * that does.
 */
import { spawnSync } from 'node:child_process';
import { findChromium, findPostgresql, findProgram } from './support/programs.ts';

/** Names of programs, which are also those of their packages. */
const PROGRAMS = ['nginx', 'haproxy', 'curl', 'jq', 'openssl', 'git', 'strace', 'mmdebstrap'];
const INSTALL = ['apt-get', 'install', '--yes', '--no-install-recommends'];

const wanted = missing();
if (wanted.length > 0) process.exitCode = install(wanted) ? 0 : 1;

function missing(): string[] {
  const programs = PROGRAMS.filter((name) => findProgram([name], process.env) === null);
  return [
    ...(findChromium(process.env) === null ? ['chromium-headless-shell'] : []),
    ...(findPostgresql() === null ? ['postgresql'] : []),
    ...(findProgram(['promtool'], process.env) === null ? ['prometheus'] : []),
    ...(findProgram(['systemd-analyze'], process.env) === null ? ['systemd'] : []),
    ...programs,
    ...(findProgram(['ssh-agent'], process.env) === null ? ['openssh-client'] : []),
  ];
}

function install(packages: readonly string[]): boolean {
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '--non-interactive'];
  if (!succeeds([...asRoot, 'apt-get', '--version'], 'ignore')) return refuse(packages);
  process.stdout.write(`Tests need ${packages.join(', ')}: installing from the distribution.\n`);
  succeeds([...asRoot, 'apt-get', 'update'], 'inherit');
  const isInstalled = succeeds([...asRoot, ...INSTALL, ...packages], 'inherit');
  return (isInstalled && missing().length === 0) || refuse(packages);
}

function refuse(packages: readonly string[]): false {
  const names = packages.join(' ');
  process.stderr.write(`Tests need ${packages.join(', ')}. Install what is missing:
  sudo apt-get install --no-install-recommends ${names}
A Chromium or Chrome elsewhere can be named by CHROMIUM_PATH.
`);
  return false;
}

function succeeds([command = '', ...args]: readonly string[], stdio: 'ignore' | 'inherit') {
  return spawnSync(command, args, { stdio }).status === 0;
}
