/**
 * Checks on a whole state beyond its single rows: the hash chain of the audit log, the chain of the authority's keys,
 * the signed lists, and every record signed by the authority [backup-5]. Reads a whole backup, and runs all of them on it.
 */
import type { Attestation } from '../../../machines/attestation.ts';
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import { createChainCheck } from '../../authority/audit/audit.ts';
import type { KeyChain } from '../../authority/authority-keys.ts';
import { createStoredLists, type StoredLists } from '../../authority/lists/stored-lists.ts';
import { SHA256 } from '../../base/crypto/digest.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { parseJson } from '../../base/json/parse.ts';
import { followChain } from '../../protocol/records/authority-chain.ts';
import { isSignedByAnyOfMany, type SignedRecord } from '../../protocol/records/signed-record.ts';
import type { NetworkIdentity } from '../../store/network-identity.ts';
import { GENESIS_HASH, type StoredSubject } from '../../store/store.ts';
import {
  factsOf,
  genesisOf,
  type Manifest,
  type TableSummaries,
} from '../../store/stream/manifest.ts';
import type { StateReading } from '../../store/stream/ports.ts';
import { readStream } from '../../store/stream/read.ts';
import type { StreamRows } from '../../store/stream/rows.ts';
import { type RowWatcher, summarize } from '../../store/stream/write.ts';

/** The state is inconsistent. The message is a sentence. */
export class UnsoundState extends Error {
  constructor(what: string) {
    super(`The state is not sound: ${what}`);
  }
}

export type StateCheck = ReturnType<typeof createStateCheck>;

/** Subjects are sorted by kind, so records of earlier kinds come before the keys. */
const KEYS = 'authority-key';

/** `network` is the one to which the state belongs. */
export function createStateCheck(network: NetworkIdentity, verify: VerifySignature) {
  const chain = createChainCheck(GENESIS_HASH);
  const firstKey = network.authority_public_key;
  const lists = createStoredLists(firstKey);
  /** Signed records that came before the keys; null once the keys are known. */
  let early: SignedSubject[] | null = [];
  let publicKeys: readonly string[] = [];
  let signedRecords = 0;

  function checkSubject(subject: StoredSubject): void {
    if (subject.kind > KEYS) endKeys();
    lists.add(subject);
    const json = signedJsonOf(subject);
    if (json === null) return;
    signedRecords += 1;
    const signed = { what: `${subject.kind} ${subject.id}`, json };
    if (early === null) checkSignature(signed);
    else early.push(signed);
  }

  function endKeys(): void {
    if (early === null) return;
    publicKeys = soundKeys(lists.keys());
    const signed = early;
    early = null;
    for (const each of signed) checkSignature(each);
  }

  /** Returns the public keys of the chain, after checking that the root key vouches for it. */
  function soundKeys({ first, inForce, keys }: KeyChain): readonly string[] {
    if (first === null) return [firstKey];
    const { network_name: networkName, root_public_key: rootKey } = network;
    const tools = { verify, sha256: SHA256 };
    const pin = { networkName, trusted: { rootKey } };
    const followed = followChain(pin, { successions: inForce }, 0, tools);
    if (followed.refusal !== null) {
      throw new UnsoundState(`the keys of the authority: ${followed.refusal.message}`);
    }
    if (first.network_authority.public_key !== firstKey) {
      throw new UnsoundState('its first authority key is not that of the network');
    }
    return keys.map(({ public_key }) => public_key);
  }

  function checkSignature({ what, json }: SignedSubject): void {
    if (isSignedByAnyOfMany(parseJson(json) as SignedRecord, publicKeys, verify)) return;
    throw new UnsoundState(`${what} does not carry the authority’s signature`);
  }

  function checkEntry(entry: StreamRows['audit']): void {
    const problem = chain.add(entry);
    if (problem === null) return;
    throw new UnsoundState(`the audit log is not intact: entry ${chain.length + 1}, ${problem}`);
  }

  const watch: RowWatcher = (table, row) => {
    if (table === 'subjects') checkSubject(row as StreamRows['subjects']);
    if (table === 'audit') checkEntry(row as StreamRows['audit']);
  };

  return {
    /** Throws `UnsoundState`. */
    watch,
    lists,
    /** Call after every row was watched; throws `UnsoundState`. */
    finish({
      auditLength,
      auditHead,
    }: Pick<StateReading['facts'], 'auditLength' | 'auditHead'>): void {
      endKeys();
      if (chain.length !== auditLength || chain.head !== auditHead) {
        throw new UnsoundState('the audit log does not end where it should end');
      }
      const problem = lists.problem();
      if (problem !== null) throw new UnsoundState(problem);
    },
    /** The number of signed records so far. */
    get signedRecords() {
      return signedRecords;
    },
  };
}

interface SignedSubject {
  /** Its kind and id. */
  readonly what: string;
  readonly json: string;
}

/** The JSON of the subject if it is a record signed by the authority. */
function signedJsonOf({ kind, snapshot: { context } }: StoredSubject): string | null {
  if (kind === 'attestation') return (context as Attestation).json;
  return kind === 'recognition-treaty' ? (context as Treaty).json : null;
}

/** Reads and checks all of a state. Rejects with one sentence about the first thing that is off. */
export async function soundTables(
  source: StateReading,
  verify: VerifySignature,
): Promise<TableSummaries> {
  const check = createStateCheck(source.facts.network, verify);
  const tables = await summarize(source, check.watch);
  check.finish(source.facts);
  return tables;
}

/** Before the first version. */
const UNPUBLISHED = -1;

/** The certificate revocation list, and the network's own feed. */
export function sequencesOf(lists: StoredLists, networkName: string) {
  return {
    crlSequence: lists.crl()?.sequence ?? UNPUBLISHED,
    feedSequence: lists.feeds().get(networkName)?.version?.sequence ?? UNPUBLISHED,
  };
}

export interface VerifiedBackup {
  readonly manifest: Manifest;
  /** The number of attestations and treaties whose signatures were checked. */
  readonly signedRecords: number;
  readonly check: StateCheck;
}

/** Rejects with a one-sentence error if anything is wrong. `watcher` creates an additional watcher of each row. */
export async function verifyBackup(
  bytes: AsyncIterable<Uint8Array>,
  verify: VerifySignature,
  watcher: (manifest: Manifest) => RowWatcher = () => () => undefined,
): Promise<VerifiedBackup> {
  const { manifest, batches } = await readStream(bytes, verify);
  const check = createStateCheck(manifest.network, verify);
  const watch = watcher(manifest);
  for await (const { table, rows } of batches) {
    for (const row of rows) {
      check.watch(table, row);
      watch(table, row);
    }
  }
  check.finish(factsOf(manifest));
  const { crlSequence, feedSequence } = sequencesOf(check.lists, manifest.network.network_name);
  if (crlSequence !== manifest.crl_sequence || feedSequence !== manifest.feed_sequence) {
    throw new UnsoundState('the sequence numbers of its lists differ from its manifest');
  }
  const { current } = check.lists.keys();
  const key = current?.publicKey ?? manifest.network.authority_public_key;
  if (genesisOf(manifest).network_authority.public_key !== key) {
    throw new UnsoundState('its genesis block does not name its current authority key');
  }
  return { manifest, signedRecords: check.signedRecords, check };
}
