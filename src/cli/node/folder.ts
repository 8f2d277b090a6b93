/** The files of a node: its key, its certificate and the verified network documents; readable only by the owner. */

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { keyFileText, writeKeyFile } from '../../base/keys/key-file.ts';
import { readPrivateKey } from '../../base/keys/read-key.ts';
import { readNamedFile } from '../../base/named-file.ts';
import type { AgentRecord } from '../../client/agent-storage.ts';
import type { StampStorage } from '../../client/kept-request.ts';
import { keyFromSeed, newSeed, type SigningKey } from '../../client/keys.ts';
import { readGenesisBlock } from '../../protocol/records/genesis.ts';
import {
  type JoinCertificate,
  readJoinCertificate,
} from '../../protocol/records/join-certificate.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../../protocol/records/revocation-list.ts';
import type { Reach } from '../connection/server.ts';
import { JSON_OPTION, type OptionsIn, option } from '../kernel/command.ts';
import { onLocalFiles } from '../kernel/errors.ts';
import { readSaved, replaceFile, saveFile } from '../kernel/files.ts';

/** A command of a node, whose files are in one folder. */
export const FOLDER = {
  options: [
    option('--node-dir <folder>', "the node's folder", { fallback: './mesh-node' }),
    JSON_OPTION,
  ],
} as const;

export type FolderOptions = OptionsIn<typeof FOLDER.options>;

export const PROOF = option('--proof <form>', 'where to send the proof of the key', {
  choices: ['body', 'header'],
  fallback: 'body',
});

/** Options of the node commands that prove possession of the node's key. */
export type NodeOptions = FolderOptions & Reach & OptionsIn<[typeof PROOF]>;

/** A day: longer than any sensible interval, far below the limit of a timer. */
export const LONGEST_INTERVAL_SECONDS = 86_400;

export function keyPath(folder: string): string {
  return join(folder, 'node.key');
}

/** The file of a record, which the commands of a node and its agent share. */
export function recordPath(folder: string, name: AgentRecord): string {
  return join(folder, `${name}.json`);
}

/** Null when there is no such file. */
export function readRecord(folder: string, name: AgentRecord): string | null {
  const path = recordPath(folder, name);
  return existsSync(path) ? readNamedFile(path, MOST_BYTES.list).toString() : null;
}

export function writeRecord(folder: string, name: AgentRecord, text: string): void {
  replaceFile(recordPath(folder, name), text);
}

export function hasNodeKey(folder: string): boolean {
  return existsSync(keyPath(folder));
}

export function readNodeKey(folder: string): SigningKey {
  if (!hasNodeKey(folder)) throw notJoined(keyPath(folder));
  return keyFromSeed(readPrivateKey(keyPath(folder)));
}

/** Creates a key, and the folder if needed; never replaces an existing key. */
export function makeNodeKey(folder: string): SigningKey {
  const publicPath = join(folder, 'node.pub');
  for (const path of [keyPath(folder), publicPath]) {
    if (existsSync(path)) throw new Error(`${path} already exists and is not overwritten`);
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const seed = newSeed();
  const key = keyFromSeed(seed);
  const keyId = key.publicKey;
  // Complete or not at all: a later start uses the key that it finds.
  const text = keyFileText({ kind: 'node private key', keyId, key: seed });
  saveFile(keyPath(folder), text, { isSecret: true, overwrites: false });
  const publicKey = Buffer.from(keyId, 'base64');
  writeKeyFile(publicPath, { kind: 'node public key', keyId, key: publicKey });
  return key;
}

export function saveCertificate(folder: string, certificate: JoinCertificate): void {
  writeRecord(folder, 'certificate', `${JSON.stringify(certificate, null, 2)}\n`);
}

export function readCertificate(folder: string): JoinCertificate {
  const path = recordPath(folder, 'certificate');
  const certificate = readSaved(path, readJoinCertificate, 'a certificate');
  if (certificate === null) throw notJoined(path);
  return certificate;
}

function notJoined(path: string): Error {
  return new Error(
    `${path} does not exist; join the network first, or name its folder with --node-dir`,
  );
}

/**
 * What the node last verified of its authority: the genesis, and the text of the followed succession statements; null until
 * there is any. Without the revocation list, which may be long.
 */
export function readHeldAuthority(folder: string) {
  return {
    genesis: readSaved(recordPath(folder, 'genesis'), readGenesisBlock, 'a genesis'),
    authorityKeys: readRecord(folder, 'authority-keys'),
  };
}

export function readHeldList(folder: string): CertificateRevocationList | null {
  const path = recordPath(folder, 'crl');
  return readSaved(path, readCertificateRevocationList, 'a revocation list');
}

/** Saves verified documents; creates the folder if needed. */
export function saveRecords(folder: string, records: ReadonlyMap<AgentRecord, string>): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Statements first, because they show why the genesis names another key.
  for (const name of ['authority-keys', 'genesis', 'crl'] as const) {
    const text = records.get(name);
    if (text !== undefined) writeRecord(folder, name, text);
  }
}

/** The stamp of the last request for a certificate, which an agent stores under the same name. */
export function requestStorage(folder: string): StampStorage {
  return {
    read: () => readRecord(folder, 'request'),
    write: (text) => onLocalFiles(() => writeRecord(folder, 'request', text)),
  };
}

/** The state that an agent stored; null if none has run here. */
export function readAgentState(folder: string): JsonObject | null {
  const read = (value: unknown) => (isJsonObject(value) ? value : null);
  return readSaved(recordPath(folder, 'agent'), read, 'the state of an agent');
}
