/**
 * Checks on a whole state beyond its single rows: the hash chain of the audit log, the signed lists, and every record
 * signed by the authority [backup-5].
 */
import type { Attestation } from '../../../machines/attestation.ts';
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import { createStoredLists, type StoredLists } from '../../authority/lists/stored-lists.ts';
import { createChainCheck } from '../../authority/subjects/audit.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { parseJson } from '../../base/json/parse.ts';
import { isSignedByAny, type SignedRecord } from '../../protocol/records/signed-record.ts';
import { GENESIS_HASH, type StoredSubject } from '../../store/store.ts';
import type { TableSummaries } from '../../store/stream/manifest.ts';
import type { StateReading } from '../../store/stream/ports.ts';
import type { StreamRows } from '../../store/stream/rows.ts';
import { type RowWatcher, summarize } from '../../store/stream/write.ts';

/** The state is inconsistent. The message is a sentence. */
export class UnsoundState extends Error {
  constructor(what: string) {
    super(`The state is not sound: ${what}`);
  }
}

export interface StateCheck {
  /** Throws `UnsoundState`. */
  readonly watch: RowWatcher;
  readonly lists: StoredLists;
  /** Call after every row was watched; throws `UnsoundState`. */
  finish(end: { readonly auditLength: number; readonly auditHead: string }): void;
  /** The number of signed records so far. */
  readonly signedRecords: number;
}

/** `authorityKey` is the public key of the authority. */
export function createStateCheck(authorityKey: string, verify: VerifySignature): StateCheck {
  const chain = createChainCheck(GENESIS_HASH);
  const lists = createStoredLists(authorityKey);
  let signedRecords = 0;

  function checkSubject(subject: StoredSubject): void {
    lists.add(subject);
    const json = signedJsonOf(subject);
    if (json === null) return;
    signedRecords += 1;
    const record = parseJson(json) as SignedRecord;
    if (isSignedByAny(record, [authorityKey], verify)) return;
    throw new UnsoundState(
      `${subject.kind} ${subject.id} does not carry the authority’s signature`,
    );
  }

  function checkEntry(entry: StreamRows['audit']): void {
    const problem = chain.add(entry);
    if (problem === null) return;
    throw new UnsoundState(`the audit log is not intact: entry ${chain.length + 1}, ${problem}`);
  }

  return {
    watch(table, row) {
      if (table === 'subjects') checkSubject(row as StreamRows['subjects']);
      if (table === 'audit') checkEntry(row as StreamRows['audit']);
    },
    lists,
    finish({ auditLength, auditHead }) {
      if (chain.length !== auditLength || chain.head !== auditHead) {
        throw new UnsoundState('the audit log does not end where it should end');
      }
      const problem = lists.problem();
      if (problem !== null) throw new UnsoundState(problem);
    },
    get signedRecords() {
      return signedRecords;
    },
  };
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
  const check = createStateCheck(source.facts.network.authority_public_key, verify);
  const tables = await summarize(source, check.watch);
  check.finish(source.facts);
  return tables;
}

/** Before the first version. */
export const UNPUBLISHED = -1;

/** The certificate revocation list, and the network's own feed. */
export function sequencesOf(lists: StoredLists, networkName: string) {
  return {
    crlSequence: lists.crl()?.sequence ?? UNPUBLISHED,
    feedSequence: lists.feeds().get(networkName)?.version?.sequence ?? UNPUBLISHED,
  };
}
