/** Networks that are spoiled before the start, and how the start ends. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { type GenesisBlock, readGenesisBlock } from '../../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../../src/protocol/records/signed-record.ts';
import { ownNetwork } from './folders.ts';
import { newKey } from './requests.ts';

/** A new network that a case can change before the start. */
export interface Setup {
  readonly folder: string;
  readonly flags: Record<string, string | boolean | string[]>;
  readonly environment: Record<string, string>;
  readonly genesis: GenesisBlock;
  path(name: string): string;
  write(name: string, text: string): void;
}

export type Case = readonly [what: string, prepare: (setup: Setup) => void, message: RegExp];

export function setupOf(): Setup {
  const folder = ownNetwork();
  const path = (name: string) => join(folder, name);
  const genesis = readGenesisBlock(JSON.parse(readFileSync(path('genesis.json'), 'utf8')));
  assert.ok(genesis !== null);
  return {
    folder,
    flags: { dataDir: folder },
    environment: {},
    genesis,
    path,
    write: (name, text) => writeFileSync(path(name), text),
  };
}

export const remove = (name: string) => (setup: Setup) =>
  rmSync(setup.path(name), { recursive: true });

export const flag = (name: string, value: string | string[]) => (setup: Setup) => {
  setup.flags[name] = value;
};
export const variable = (name: string, value: string) => (setup: Setup) => {
  setup.environment[name] = value;
};

/** Writes a changed genesis block to the folder, signed by the root key unless other signers are given. */
export function genesisWith(
  change: (setup: Setup) => object,
  signers?: (root: Signer) => Signer[],
) {
  return (setup: Setup) => {
    const root = signerFromSeed(seedIn(setup, 'root'));
    const { signatures: _, ...unsigned } = { ...setup.genesis, ...change(setup) };
    const signatures = (signers?.(root) ?? [root]).flatMap(
      (signer) => signRecord(unsigned, soleSigner(signer)).signatures,
    );
    setup.write('genesis.json', JSON.stringify({ ...unsigned, signatures }));
  };
}

export function seedIn(setup: Setup, name: string): Buffer {
  const text = readFileSync(setup.path(`keys/${name}.key`), 'utf8');
  return Buffer.from(text.split('\n')[2] ?? '', 'base64');
}

export const KEY = newKey().publicKey;

export const keyFlag = (...values: string[]) => flag('operatorPublicKey', values);

export const tiersJson = (value: object | string) =>
  variable('OPERATOR_KEY_TIERS_JSON', typeof value === 'string' ? value : JSON.stringify(value));
