/** The native dependencies: the platforms their builds support, and an error message if one does not load. */
import { createRequire } from 'node:module';

const PARTS = ['uWebSockets.js', 'lmdb', 'sodium-native', 'fs-native-extensions'] as const;

/** The platform that runs the program. */
export interface Platform {
  /** As Node.js reports it, without the `v`. */
  readonly nodeVersion: string;
  /** Null on a system whose C library is not glibc. */
  readonly glibcVersion: string | null;
}

export function thisPlatform(): Platform {
  const { header } = process.report.getReport() as {
    readonly header: { readonly glibcVersionRuntime?: string };
  };
  const glibcVersion = header.glibcVersionRuntime ?? null;
  return { nodeVersion: process.versions.node, glibcVersion };
}

/** The Node.js versions with prebuilt binaries, each with the oldest minor version of glibc 2 that can load them. */
const GLIBC_FOR: { readonly [major: string]: number } = {
  20: 27,
  22: 38,
  23: 38,
  24: 38,
  25: 38,
};
const OLDEST_MINOR_OF_20 = 15;

/** The oldest minor version of glibc 2 that can load the builds for this Node.js; null if there are none. */
export function oldestGlibc({ nodeVersion }: Platform): number | null {
  const [major = '', minor = ''] = nodeVersion.split('.');
  if (major === '20' && Number(minor) < OLDEST_MINOR_OF_20) return null;
  return GLIBC_FOR[major] ?? null;
}

export function hasGlibc({ glibcVersion }: Platform, leastMinor: number): boolean {
  const [major, minor] = (glibcVersion ?? '').split('.').map(Number);
  return major === 2 && (minor ?? 0) >= leastMinor;
}

/** Throws if one does not load. */
export function loadNativeParts(): void {
  for (const part of PARTS) {
    try {
      createRequire(import.meta.url)(part);
    } catch (cause) {
      throw new Error(notLoaded(part, thisPlatform()), { cause });
    }
  }
}

const RUNS_WITH =
  'Node.js 20.15 or later with glibc 2.27 or later, and Node.js 22 to 25 with glibc 2.38 or later';

export function notLoaded(part: string, platform: Platform): string {
  const { nodeVersion, glibcVersion } = platform;
  const library = glibcVersion === null ? 'a C library other than glibc' : `glibc ${glibcVersion}`;
  const found = `${part} does not load with Node.js ${nodeVersion} and ${library}`;
  const least = oldestGlibc(platform);
  return least !== null && hasGlibc(platform, least)
    ? `${found}, although a build for them exists: reinstall the packages, with npm ci in a checkout`
    : `${found}. Supported: ${RUNS_WITH}. Use one of these, such as Node.js 20`;
}
