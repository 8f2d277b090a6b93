/** Finds the programs that tests run and npm does not install. */
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The shell has the same engine without the windows of a browser, and takes half of the processor's time. */
const CHROMIUM = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
/** Where servers are installed, which is not on every user's path. */
const SERVERS = '/usr/sbin';

/** Chromium at `CHROMIUM_PATH`, or under one of its names on the path; null if there is none. */
export function findChromium(environment: NodeJS.ProcessEnv): string | null {
  const { CHROMIUM_PATH: given } = environment;
  if (given !== undefined) return isExecutable(given) ? given : null;
  return findProgram(CHROMIUM, environment);
}

/** The path of a program with one of these names, on the path or among the servers; null if there is none. */
export function findProgram(
  names: readonly string[],
  { PATH = '' }: NodeJS.ProcessEnv,
): string | null {
  const folders = [...PATH.split(delimiter), SERVERS];
  const candidates = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return candidates.find(isExecutable) ?? null;
}

/** Debian installs each major version in its own folder, none of which is on the path. */
const POSTGRESQL = '/usr/lib/postgresql';

/** The folder with the programs of the newest PostgreSQL version; null if there is none. */
export function findPostgresql(): string | null {
  const versions = existsSync(POSTGRESQL) ? readdirSync(POSTGRESQL) : [];
  const folders = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(POSTGRESQL, version, 'bin'));
  return folders.find((folder) => isExecutable(join(folder, 'postgres'))) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
