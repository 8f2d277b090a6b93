/**
 * Makes tests independent of the checkout and of the user who runs them: a test file that imports this runs in an
 * empty folder with an empty home, and sees no settings of that user. Everything that starts processes, servers or
 * databases imports it.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { scratchFolder } from './scratch.ts';

/** Settings of the program, of its libraries and of Node.js. */
const SETTING =
  /^(?:MESH_|NA_|GENESIS_|OPERATOR_|RENEWAL_|PG|XDG_|SSH_|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|HOST$|PORT$)/;
const OF_TESTS = /^MESH_(?:TEST|UPDATE)_/;

/** Benchmarks, searches and processes that tests start also import parts of the tests. */
const isTestFile = /\.test\.m?[jt]s$/.test(process.argv[1] ?? '');
if (isTestFile) isolate();

function isolate(): void {
  // Keeps npm's cache and its registry settings.
  process.env.npm_config_cache ??= join(homedir(), '.npm');
  process.env.npm_config_userconfig ??= join(homedir(), '.npmrc');
  for (const name of Object.keys(process.env)) {
    if (SETTING.test(name) && !OF_TESTS.test(name)) delete process.env[name];
  }
  const { path } = scratchFolder('mesh-na-user-');
  // Servers run as other users.
  chmodSync(path, 0o711);
  for (const name of ['home', 'work']) mkdirSync(join(path, name));
  process.env.HOME = join(path, 'home');
  process.chdir(join(path, 'work'));
}

/** The environment of a program that a test runs. */
export function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !SETTING.test(name)));
}
