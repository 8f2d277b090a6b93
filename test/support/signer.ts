/** A signer in a separate process, and networks whose key it has. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { runCommand } from './commands.ts';
import { makeNetworkFolder } from './folders.ts';
import { spawnNode } from './processes.ts';
import { PROGRAM } from './project.ts';

export interface SignedNetwork {
  readonly dataDir: string;
  /** The key, outside of the data folder. */
  readonly keyFile: string;
  /** Where its signer listens. */
  readonly path: string;
  readonly address: string;
}

const folders: string[] = [];
const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function signedNetwork(): SignedNetwork {
  const { folder: dataDir } = makeNetworkFolder();
  const apart = mkdtempSync(join(tmpdir(), 'mesh-signer-'));
  folders.push(dataDir, apart);
  const keyFile = join(apart, 'na.key');
  renameSync(join(dataDir, 'keys', 'na.key'), keyFile);
  const path = join(apart, 'socket');
  return { dataDir, keyFile, path, address: `unix:${path}` };
}

export interface RunningSigner {
  readonly process: ChildProcess;
  output(): string;
  /** The exit code and the signal, once it has ended. */
  readonly ended: Promise<unknown>;
  /** Sends the signal and waits for the end. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
}

type Places = Pick<SignedNetwork, 'keyFile' | 'address'>;

function signerCommand({ keyFile, address }: Places, args: readonly string[]): string[] {
  return ['signer', '--key', keyFile, '--listen', address, ...args];
}

/** Why a signer does not start. */
export async function refusedSigner(places: Places, args: readonly string[] = []): Promise<string> {
  const { code, stderr } = await runCommand(signerCommand(places, args));
  assert.ok(code === 2 || code === 3, stderr);
  return stderr;
}

/** Resolves when the signer is ready. */
export async function startSigner(
  places: Places,
  args: readonly string[] = [],
  program = PROGRAM,
): Promise<RunningSigner> {
  const command = [...program, ...signerCommand(places, args)];
  const child = spawnNode(command, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const ended = once(child, 'close');
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said.push(text);
      if (said.join('').includes('Signing at')) resolve();
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => said.push(text));
    child.once('close', () => reject(new Error(said.join(''))));
  });
  return {
    process: child,
    output: () => said.join(''),
    ended,
    async end(signal) {
      child.kill(signal);
      await ended;
    },
  };
}
