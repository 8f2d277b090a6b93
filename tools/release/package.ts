/**
 * The package: the compiled program with everything that it loads, for Linux on x64. It brings its dependencies along,
 * because npm would install the binaries of every platform, 300 MB of them, and would need a registry.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { manPage } from './man-page.ts';

/** The versions of Node.js that uWebSockets.js has binaries for, by the version of their modules. */
const ABIS = { 20: '115', 22: '127', 24: '137', 25: '141' };
const PLATFORM = 'linux-x64';
const SUBFOLDERS = ['README.md', 'LICENSE', 'CHANGELOG.md', 'docs', 'dist/src', 'dist/program'];

interface Manifest {
  readonly [member: string]: unknown;
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Writes the package to an empty folder, from a checkout that is built. */
export function stagePackage(root: string, folder: string): void {
  mkdirSync(join(folder, 'dist'), { recursive: true });
  for (const name of SUBFOLDERS) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  rmSync(join(folder, 'docs/screenshots'), { recursive: true, force: true });
  mkdirSync(join(folder, 'man'));
  writeFileSync(join(folder, 'man/mesh-na.1'), manPage());
  const manifest = readManifest(root);
  const loaded = loadedPackages(join(folder, 'dist'), Object.keys(manifest.dependencies ?? {}));
  for (const path of packagesBelow(root, loaded)) copyPackage(root, folder, path);
  writeFileSync(join(folder, 'package.json'), jsonText(bundledManifest(manifest, loaded)));
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** What npm needs to know about a package whose dependencies are in it. */
function bundledManifest(manifest: Manifest, loaded: readonly string[]): object {
  const { devDependencies, scripts, overrides, dependencies = {}, ...kept } = manifest;
  return {
    ...kept,
    man: ['man/mesh-na.1'],
    os: ['linux'],
    cpu: ['x64'],
    libc: ['glibc'],
    dependencies: Object.fromEntries(loaded.map((name) => [name, dependencies[name]])),
    bundleDependencies: loaded,
  };
}

/** Most dependencies are compiled into the program: these are the ones that it, or an exported module, still names. */
function loadedPackages(compiled: string, dependencies: readonly string[]): string[] {
  const names = readdirSync(compiled, { recursive: true, encoding: 'utf8' });
  const text = names
    .filter((name) => name.endsWith('.js') && !name.includes('/browser/'))
    .map((name) => readFileSync(join(compiled, name), 'utf8'))
    .join('\n');
  return dependencies.filter((name) => {
    const escaped = name.replace(/[.\\/]/g, '\\$&');
    return new RegExp(`(?:\\(\\s*|from |import )["']${escaped}(?:/[^"']*)?["']`).test(text);
  });
}

/** The folders of these packages and of all that they depend on, as Node.js finds them from each other. */
function packagesBelow(root: string, names: readonly string[]): Set<string> {
  const found = new Set<string>();
  const visit = (from: string, name: string, isOptional: boolean): void => {
    const path = resolved(root, from, name);
    if (path === null) {
      if (isOptional) return;
      throw new Error(`${name} is not installed: run npm ci`);
    }
    if (found.has(path)) return;
    found.add(path);
    const { dependencies = {}, optionalDependencies = {} } = readManifest(join(root, path));
    const optional = Object.keys(optionalDependencies);
    for (const below of new Set([...Object.keys(dependencies), ...optional])) {
      visit(path, below, optional.includes(below));
    }
  };
  for (const name of names) visit('', name, false);
  return found;
}

function resolved(root: string, from: string, name: string): string | null {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules') - 1))) {
    const path = join(at, 'node_modules', name);
    if (existsSync(join(root, path))) return path;
    if (at === '') return null;
  }
}

/**
 * Copies what is loaded and what the license asks for. The binaries are there already: without its scripts and its
 * `binding.gyp`, a package is not compiled when it is installed.
 */
function copyPackage(root: string, folder: string, path: string): void {
  const from = join(root, path);
  cpSync(from, join(folder, path), {
    recursive: true,
    dereference: true,
    filter: (source) => isKept(source.slice(from.length + 1)),
  });
  const { scripts, devDependencies, ...manifest } = readManifest(from);
  writeFileSync(join(folder, path, 'package.json'), jsonText(manifest));
}

const SOURCES = /\.(?:cc?|cpp|h|hpp|gyp|gypi|map|bare|mm?|lock)$|^CMakeLists\.txt$/;
const UNUSED = /^(?:\.github|docs|examples|tests?|misc|mvp|scripts|rollup\.config\.js|.*\.svg)$/;

function isKept(path: string): boolean {
  if (path === 'node_modules' || path.startsWith('node_modules/')) return false;
  const [, binary] = /^uws_(.*)\.node$/.exec(path) ?? [];
  if (binary !== undefined) {
    return Object.values(ABIS).some((abi) => binary === `linux_x64_${abi}`);
  }
  const [, platform] = /^prebuilds\/([^/]+)/.exec(path) ?? [];
  if (platform !== undefined && platform !== PLATFORM) return false;
  return !path.endsWith('.musl.node') && !SOURCES.test(path) && !UNUSED.test(path);
}
