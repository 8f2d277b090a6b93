/** Where the programs are that tests run and npm does not bring. */
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'];
/** Where servers are installed; not on the path of every user. */
const SERVERS = '/usr/sbin';

/** Chromium at `CHROMIUM_PATH`, or under one of its names on the path; null when there is none. */
export function findChromium(environment: NodeJS.ProcessEnv): string | null {
  const { CHROMIUM_PATH: given } = environment;
  if (given !== undefined) return isExecutable(given) ? given : null;
  return findProgram(CHROMIUM, environment);
}

/** A path of the first of these names that is on the path, or is that of a server; null when there is none. */
export function findProgram(
  names: readonly string[],
  { PATH = '' }: NodeJS.ProcessEnv,
): string | null {
  const folders = [...PATH.split(delimiter), SERVERS];
  const candidates = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return candidates.find(isExecutable) ?? null;
}

/** Debian installs each major version in a folder of its own, none of which is on the path. */
const POSTGRESQL = '/usr/lib/postgresql';

/** The folder with the programs of PostgreSQL, of its newest version; null when there is none. */
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
