/** The parts in native code: what their builds run with, and one sentence where one does not load. */

const PARTS = ['uWebSockets.js', 'lmdb', 'sodium-native', 'fs-native-extensions'] as const;

/** What runs the program. */
export interface Platform {
  /** As Node.js spells it, without `v`. */
  readonly nodeVersion: string;
  /** Null on a system with another library than glibc. */
  readonly glibcVersion: string | null;
}

export function thisPlatform(): Platform {
  const { header } = process.report.getReport() as {
    readonly header: { readonly glibcVersionRuntime?: string };
  };
  const glibcVersion = header.glibcVersionRuntime ?? null;
  return { nodeVersion: process.versions.node, glibcVersion };
}

/** The versions of Node.js that there are builds for, each with the oldest minor version of glibc 2 for them. */
const GLIBC_FOR: { readonly [major: string]: number } = {
  20: 27,
  22: 38,
  23: 38,
  24: 38,
  25: 38,
};
const OLDEST_MINOR_OF_20 = 15;

/** The oldest minor version of glibc 2 that builds for this Node.js load with; null when there are none for it. */
export function oldestGlibc({ nodeVersion }: Platform): number | null {
  const [major = '', minor = ''] = nodeVersion.split('.');
  if (major === '20' && Number(minor) < OLDEST_MINOR_OF_20) return null;
  return GLIBC_FOR[major] ?? null;
}

export function hasGlibc({ glibcVersion }: Platform, leastMinor: number): boolean {
  const [major, minor] = (glibcVersion ?? '').split('.').map(Number);
  return major === 2 && (minor ?? 0) >= leastMinor;
}

/** Throws where one does not load. */
export async function loadNativeParts(): Promise<void> {
  for (const part of PARTS) {
    try {
      await import(part);
    } catch (cause) {
      throw new Error(notLoaded(part, thisPlatform()), { cause });
    }
  }
}

const RUNS_WITH =
  'Node.js 20.15 or later with glibc 2.27 or later, and Node.js 22 to 25 with glibc 2.38 or later';

export function notLoaded(part: string, platform: Platform): string {
  const { nodeVersion, glibcVersion } = platform;
  const library = glibcVersion === null ? 'another C library than glibc' : `glibc ${glibcVersion}`;
  const found = `${part} does not load with Node.js ${nodeVersion} and ${library}`;
  const least = oldestGlibc(platform);
  return least !== null && hasGlibc(platform, least)
    ? `${found}, which it has a build for: install the packages again, by npm ci in a checkout`
    : `${found}. What runs: ${RUNS_WITH}. Use one of these, such as Node.js 20`;
}
