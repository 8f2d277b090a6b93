/** The package as users get it: packed by npm, and installed into an empty folder. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_PATH } from './project.ts';

/** The parts of a checkout that `npm pack` needs. */
const PACKED_FROM = [
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'README.md',
  'LICENSE',
  'docs',
  'machines',
  'src',
];
const TARBALL = 'package.tgz';

interface LockedPackage {
  readonly dev?: boolean;
}

interface Lock {
  readonly packages: { readonly [path: string]: LockedPackage };
}

/** Installs the package into a new folder, which the caller must remove. */
export function installPacked(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-installed-'));
  const { name, version } = JSON.parse(readFileSync(join(PROJECT_PATH, 'package.json'), 'utf8'));
  pack(join(folder, 'checkout'), folder);
  const manifest = { private: true, dependencies: { [name]: `file:${TARBALL}` } };
  writeJson(join(folder, 'package.json'), manifest);
  writeJson(join(folder, 'package-lock.json'), lockOf(name, version, manifest.dependencies));
  // The lock file names every version, so all of them have been in npm's cache since the checkout's `npm ci`.
  npm(folder, ['ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']);
  return folder;
}

/** Packs a copy, because packing compiles into `dist/`, which other tests may be using. */
function pack(copy: string, destination: string): void {
  mkdirSync(copy);
  for (const path of PACKED_FROM)
    cpSync(join(PROJECT_PATH, path), join(copy, path), { recursive: true });
  symlinkSync(join(PROJECT_PATH, 'node_modules'), join(copy, 'node_modules'));
  const packed = npm(copy, ['pack', '--pack-destination', destination]).trim().split('\n').at(-1);
  cpSync(join(destination, String(packed)), join(destination, TARBALL));
}

/** The checkout's lock file without development packages, for a project that depends on this package. */
function lockOf(name: string, version: string, dependencies: { [name: string]: string }) {
  const { packages } = JSON.parse(
    readFileSync(join(PROJECT_PATH, 'package-lock.json'), 'utf8'),
  ) as Lock;
  const { '': itself, ...others } = packages;
  const { devDependencies: _, ...installed } = itself as LockedPackage & {
    devDependencies: unknown;
  };
  const needed = Object.entries(others).filter(([, { dev }]) => !dev);
  return {
    lockfileVersion: 3,
    packages: {
      '': { dependencies },
      ...Object.fromEntries(needed),
      [`node_modules/${name}`]: { ...installed, name, version, resolved: `file:${TARBALL}` },
    },
  };
}

function npm(cwd: string, args: readonly string[]): string {
  return execFileSync('npm', ['--silent', ...args], { cwd, encoding: 'utf8' });
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, JSON.stringify(value, null, 2));
}
