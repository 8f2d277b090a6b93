/**
 * The folder of a fleet: the network it belongs to, and a file with the keys and certificates of its nodes, one JSON
 * line each. Lines are only added, and the last one of a key counts, so that an interrupted run loses nothing.
 */

import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { MOST_BYTES } from '../../src/base/byte-bounds.ts';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import { readNamedFile } from '../../src/base/named-file.ts';
import type { FleetNode } from './requests.ts';

const FleetNetwork = Type.Object({
  version: Type.Literal(1),
  network_name: Type.String(),
  /** The authority's public key. */
  authority_key: Type.String(),
  validity_hours: Type.Integer({ minimum: 1 }),
});
export type FleetNetwork = Static<typeof FleetNetwork>;

const StoredNode = Type.Object({
  /** Base64 of the 32-byte seed of the node's private key. */
  seed: Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' }),
  cert_id: Type.String(),
});
export type StoredNode = Static<typeof StoredNode>;

const networkSchema = Compile(FleetNetwork);
const nodeSchema = Compile(StoredNode);

export interface Fleet {
  readonly network: FleetNetwork;
  readonly nodes: readonly StoredNode[];
  /** Certificates that the fleet ever got, including those that were renewed. */
  readonly certificates: number;
}

const NODES_FILE = 'nodes.jsonl';

function networkPath(folder: string): string {
  return join(folder, 'fleet.json');
}

/** Null if the folder holds no fleet. Throws if it is damaged. */
export function readFleet(folder: string): Fleet | null {
  const path = networkPath(folder);
  if (!existsSync(path)) return null;
  const network = parsed(readNamedFile(path, MOST_BYTES.list).toString());
  if (!networkSchema.Check(network)) throw new Error(`${path} does not describe a fleet`);
  const lines = linesOf(join(folder, NODES_FILE));
  const nodes = new Map<string, StoredNode>();
  for (const [index, line] of lines.entries()) {
    const node = parsed(line);
    if (!nodeSchema.Check(node)) {
      const place = `Line ${index + 1} of ${join(folder, NODES_FILE)}`;
      throw new Error(`${place} is not a node of a fleet; remove it if it was cut off`);
    }
    nodes.set(node.seed, node);
  }
  return { network, nodes: [...nodes.values()], certificates: lines.length };
}

export function createFleet(folder: string, network: FleetNetwork): Fleet {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(networkPath(folder), `${JSON.stringify(network, null, 2)}\n`, { mode: 0o600 });
  return { network, nodes: [], certificates: 0 };
}

export function addToFleet(folder: string, nodes: readonly StoredNode[]): void {
  const lines = nodes.map((node) => `${JSON.stringify(node)}\n`);
  appendFileSync(join(folder, NODES_FILE), lines.join(''), { mode: 0o600 });
}

export function signingNode({ seed, cert_id }: StoredNode): FleetNode {
  return { key: signerFromSeed(Buffer.from(seed, 'base64')), certId: cert_id };
}

function linesOf(path: string): string[] {
  if (!existsSync(path)) return [];
  const lines = readNamedFile(path, MOST_BYTES.list).toString().split('\n');
  return lines.filter((line) => line !== '');
}

/** The value of a JSON text of our own; null if it is damaged. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
