/** Data folders for tests, with networks created by `init`. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { systemRuntime } from '../../src/base/runtime.ts';
import {
  type InitOptions,
  type InitSummary,
  initNetwork,
} from '../../src/cli/service/init-network.ts';
import './isolation.ts';
import assert from 'node:assert/strict';
import { readKeyFile } from '../../src/base/keys/key-file.ts';

/** `given` sets the time of creation and the seeds of the keys, in this order: root, authority, first operators. */
export function makeNetworkFolder(
  networkName = 'alpha',
  given: Partial<Pick<InitOptions, 'now' | 'randomSeed'>> = {},
): { folder: string; made: InitSummary } {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-test-'));
  const made = initNetwork({
    dataDir: folder,
    networkName,
    networkVersion: 'v0.1',
    // A clock that starts later is later, even within the same millisecond: a succession needs that.
    now: systemRuntime.now() - 1,
    randomSeed: () => systemRuntime.randomBytes(32),
    ...given,
  });
  return { folder, made };
}

/** An empty folder that is removed with the test or file that asks for it; not for hooks. */
export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-own-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The data folder of a new network, likewise. */
export function ownNetwork(networkName = 'alpha'): string {
  const { folder } = makeNetworkFolder(networkName);
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** In memory if possible, which is fast even with thousands of small files. */
const SCRATCH = process.env.TMPDIR === undefined && existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** An empty folder for one test, removed when the test ends. */
export function scratchFolder() {
  const path = mkdtempSync(join(SCRATCH, 'mesh-na-test-'));
  return {
    path,
    async [Symbol.asyncDispose]() {
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** A data folder for one test, removed when the test ends. */
export function networkFolder(networkName: string) {
  const { folder } = makeNetworkFolder(networkName);
  return {
    path: folder,
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The path of an empty folder that is removed after the tests of the file or suite. */
export function sharedScratch(): string {
  const path = mkdtempSync(join(tmpdir(), 'mesh-na-test-'));
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The private keys of the folder, in base64 and in hexadecimal. */
export function privateKeysOf({ dataDir }: { readonly dataDir: string }): string[] {
  return ['na', 'root', 'operator-privileged', 'operator-standard'].flatMap((name) => {
    const file = join(dataDir, 'keys', `${name}.key`);
    const seed = readKeyFile(file);
    assert.ok(readFileSync(file, 'utf8').includes(seed.toString('base64')));
    return [seed.toString('base64'), seed.toString('hex')];
  });
}
