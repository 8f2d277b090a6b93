/**
 * A test depends neither on the checkout that it lies in nor on the user who runs it: a test file that imports this
 * works in an empty folder, has an empty home, and sees no setting of that user. Everything that starts
 * processes, servers or databases imports it.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { scratchFolder } from './scratch.ts';

/** Of the program, of its libraries, and of Node.js. */
const SETTING =
  /^(?:MESH_|NA_|GENESIS_|OPERATOR_|RENEWAL_|PG|XDG_|SSH_|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|HOST$|PORT$)/;
const OF_TESTS = /^MESH_(?:TEST|UPDATE)_/;

/** Benchmarks, searches and processes that tests start import parts of the tests too. */
const isTestFile = /\.test\.[jt]s$/.test(process.argv[1] ?? '');
if (isTestFile) isolate();

function isolate(): void {
  // What npm has downloaded, and where it downloads from, stay what they are.
  process.env.npm_config_cache ??= join(homedir(), '.npm');
  process.env.npm_config_userconfig ??= join(homedir(), '.npmrc');
  for (const name of Object.keys(process.env)) {
    if (SETTING.test(name) && !OF_TESTS.test(name)) delete process.env[name];
  }
  const { path } = scratchFolder('mesh-na-user-');
  // Servers run as users of their own.
  chmodSync(path, 0o711);
  for (const name of ['home', 'work']) mkdirSync(join(path, name));
  process.env.HOME = join(path, 'home');
  process.chdir(join(path, 'work'));
}

/** The environment of a program that a test runs. */
export function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !SETTING.test(name)));
}
