/** Checks of the state that a service would start from: its integrity, its network, and its heads. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type KeyChain, storedChain, trustedKeys } from '../../authority/authority-keys.ts';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { fromNow } from '../../base/duration.ts';
import { messageOf } from '../../base/error-message.ts';
import { readNamedFile } from '../../base/named-file.ts';
import { CLOCK_TOLERANCE_MS } from '../../client/offline.ts';
import { createStateCheck, UnsoundState } from '../../maintenance/backup/check-state.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { headIn, judgeHeads, type KeptHead } from '../../server/head/open.ts';
import { subjectsOf } from '../../store/contents.ts';
import { shapesIn } from '../../store/meta-rows.ts';
import { asFoundedIn, assertSameNetwork, networkOf } from '../../store/network-identity.ts';
import { NoStateYet } from '../../store/postgresql/source.ts';
import { DamagedState, OtherSchema } from '../../store/rows.ts';
import type { StateFacts, StateSource } from '../../store/stream/ports.ts';
import { STREAM_TABLES, type StreamRows } from '../../store/stream/rows.ts';
import { assertNeverUsed } from '../../store/usage-mark.ts';
import { type Finding, fine, unknown, warning, wrong } from './finding.ts';
import type { Holder } from './machine.ts';
import { checkFirstPolicy } from './settings.ts';

export interface StateOptions {
  readonly dataDir: string;
  readonly genesis: GenesisBlock;
  /** The keys that the service would hold, the current one first; null if not known. */
  readonly held: readonly string[] | null;
  /** The head files. */
  readonly headFiles: readonly string[];
  /** Whether a database holds the state, instead of the data folder. */
  readonly isInDatabase: boolean;
  readonly holder: Holder | null;
  /** Whether to read every row. */
  readonly deep: boolean;
  readonly now: number;
  open(): Promise<StateSource>;
}

const RESTORE = 'Restore the state from a backup, including later revocations';
const STATE_FILE = 'state/data.mdb';

/** How to fix a state that cannot be read or is damaged. */
function cureFor(cause: unknown, { isInDatabase }: StateOptions): string {
  if (cause instanceof OtherSchema) return 'Use the program version that matches the state';
  const isDamage = cause instanceof DamagedState || cause instanceof UnsoundState;
  if (!isInDatabase) return RESTORE;
  return isDamage ? `${STANDBY}; else restore it ${INTO_ANOTHER}` : MEND_DATABASE;
}

/** Standbys do not receive damage of the primary's disk. */
const STANDBY = 'Promote a standby whose state passes mesh-na store verify, if there is one';
const INTO_ANOTHER =
  'from a backup into an empty database, including later revocations (mesh-na restore apply --store)';
const MEND_DATABASE = 'Repair the database, or set --store to the database with the state';

export async function checkState(options: StateOptions): Promise<Finding[]> {
  const { dataDir, isInDatabase } = options;
  if (!isInDatabase && !existsSync(join(dataDir, STATE_FILE))) {
    return [unusedState(dataDir, `${STATE_FILE} is missing`, RESTORE)];
  }
  // Read the heads before the state, because a running service keeps writing both.
  const kept = options.headFiles.map(readHeadFile);
  let source: StateSource;
  try {
    source = await options.open();
  } catch (cause) {
    if (cause instanceof NoStateYet) {
      const cure = `${MEND_DATABASE}; if it is lost, restore it ${INTO_ANOTHER}`;
      return [unusedState(dataDir, 'the database has no state', cure)];
    }
    return [wrong('store', messageOf(cause), cureFor(cause, options))];
  }
  try {
    const own = await checkOwner(source, options);
    if (own.outcome === 'wrong') return [own];
    const stop = lastStop(source.facts, options.holder);
    const keys = await keysIn(source).catch((cause: unknown) =>
      wrong('rows', messageOf(cause), cureFor(cause, options)),
    );
    if ('outcome' in keys) return [own, stop, keys];
    const heads = headsSignedBy(trustedKeys(keys, source.facts.network), kept);
    const succession = [...checkSuccession(keys, options), ...firstPolicyOf(keys, options)];
    return [own, ...succession, stop, ...(await historyOf(source, heads, options))];
  } finally {
    await source.close();
  }
}

async function keysIn({ tables, meta }: StateSource): Promise<KeyChain> {
  return storedChain(await subjectsOf(tables, shapesIn(meta), 'authority-key'));
}

/** Only the state knows the first genesis of a network whose authority has replaced its key. */
function firstPolicyOf({ first }: KeyChain, { genesis }: StateOptions): readonly Finding[] {
  return first === null ? [] : [checkFirstPolicy(genesis, first)];
}

function unusedState(dataDir: string, missing: string, cure: string): Finding {
  try {
    assertNeverUsed(dataDir, missing);
    return fine('store', 'There is no state yet; the first start creates it');
  } catch (cause) {
    return wrong('store', messageOf(cause), cure);
  }
}

async function checkOwner(
  { tables, facts, database }: StateSource,
  { genesis }: StateOptions,
): Promise<Finding> {
  try {
    const network = await asFoundedIn(tables, facts.network, networkOf(genesis));
    assertSameNetwork(facts.network, network, 'the store');
  } catch (cause) {
    return wrong('store', messageOf(cause), 'Use the data folder or database of this network');
  }
  const place = `${database.backend}, schema version ${database.schemaVersion}`;
  const found = `Revision ${facts.revision} of epoch ${facts.epoch} (${place})`;
  return fine('store', found);
}

function lastStop({ isClosed }: StateFacts, holder: Holder | null): Finding {
  if (isClosed) return fine('last_stop', 'The last process stored everything before it stopped');
  if (holder !== null) return fine('last_stop', 'A process is running');
  return warning(
    'last_stop',
    'The last process ended without storing everything, or a process is running on another machine',
    'Look for the cause in its log; acknowledged changes are kept, and the next start recovers',
  );
}

/** A head file, with its head or a description of the problem. */
type FoundHead = { readonly path: string; readonly head: KeptHead['head'] | string };

/** What a head file contains, null if there is none; or why it cannot be read. */
type HeadText = { readonly path: string } & (
  | { readonly text: string | null }
  | { readonly problem: string }
);

function readHeadFile(path: string): HeadText {
  try {
    return { path, text: existsSync(path) ? readNamedFile(path, MOST_BYTES.key).toString() : null };
  } catch (cause) {
    return { path, problem: messageOf(cause) };
  }
}

function headsSignedBy(publicKeys: readonly string[], kept: readonly HeadText[]): FoundHead[] {
  return kept.map(({ path, ...read }) => {
    if ('problem' in read) return { path, head: read.problem };
    try {
      return { path, head: headIn(path, read.text, publicKeys) };
    } catch (cause) {
      return { path, head: messageOf(cause) };
    }
  });
}

async function historyOf(
  source: StateSource,
  found: readonly FoundHead[],
  options: StateOptions,
): Promise<Finding[]> {
  const hashes = options.deep ? await hashesOf(source, found, options) : null;
  if (hashes !== null && 'outcome' in hashes) {
    const cure = 'Repair the state first';
    return [hashes, ...found.map(({ path }) => unknown('head', `${path} was not compared`, cure))];
  }
  const heads = await Promise.all(
    found.map((each) => checkHead(each, source, hashes, options.now)),
  );
  const rows =
    hashes === null ? [] : [fine('rows', 'Every row, signature and audit entry is sound')];
  return [...rows, ...(found.length === 0 ? [NO_HEAD] : heads)];
}

const NO_HEAD = warning(
  'head',
  'No head file is configured, so a rollback of the state would go unnoticed',
  'Set --head-file or MESH_HEAD_FILE to a file in another place',
);

/** The hash of each audit entry that a head names, by number. */
type Hashes = ReadonlyMap<number, string>;

/** Reads everything, as a backup does; returns a finding if something is wrong. */
async function hashesOf(
  source: StateSource,
  heads: readonly FoundHead[],
  options: StateOptions,
): Promise<Hashes | Finding> {
  const named = new Set(heads.map(({ head }) => (isHead(head) ? head.audit_length : 0)));
  const hashes = new Map<number, string>();
  const check = createStateCheck(source.facts.network, verifySignature);
  let entries = 0;
  try {
    for (const table of STREAM_TABLES) {
      for await (const rows of source.rows(table)) {
        for (const row of rows) {
          check.watch(table, row);
          if (table !== 'audit') continue;
          entries += 1;
          if (named.has(entries)) hashes.set(entries, (row as StreamRows['audit']).hash);
        }
      }
    }
    check.finish(source.facts);
    return hashes;
  } catch (cause) {
    return wrong('rows', messageOf(cause), cureFor(cause, options));
  }
}

function isHead(head: FoundHead['head']) {
  return head !== null && typeof head === 'object';
}

async function checkHead(
  { path, head }: FoundHead,
  { facts }: StateSource,
  hashes: Hashes | null,
  now: number,
): Promise<Finding> {
  if (typeof head === 'string')
    return wrong('head', head, `Restore ${path} from its backup location`);
  const { epoch, revision, auditLength, auditHead } = facts;
  const position = { epoch, revision, auditLength, auditHead };
  const hashAt = async (entry: number) => {
    if (entry === auditLength) return auditHead;
    return hashes === null ? (head?.audit_head ?? null) : (hashes.get(entry) ?? null);
  };
  try {
    await judgeHeads([{ path, head }], { position, hashAt }, false);
  } catch (cause) {
    const cure = 'Find out what happened to the state before you start the authority';
    return wrong('head', messageOf(cause), cure);
  }
  if (head !== null && instantOf(head.written_at) > now + CLOCK_TOLERANCE_MS) {
    const found = `The head in ${path} was written at ${head.written_at}, which is in the future`;
    return wrong('clock', found, 'Set the clock of this machine');
  }
  const extent = hashes === null ? ', judging by its end' : '';
  return fine('head', `The state contains the head in ${path}${extent}`);
}

/** A staged key takes over within seconds of its time. */
const PATIENCE_MS = 60_000;
const PLACE =
  'Copy the file that mesh-na authority-key prepare wrote next to the key of the authority, or give it to the signer as --next-key';

/** What a service started here could sign with; nothing is said if that is not known. */
function checkSuccession(
  { staged, previous, has }: KeyChain,
  { held, genesis, holder, now }: StateOptions,
): Finding[] {
  if (held === null) return [];
  if (staged !== null) {
    const { publicKey, activatesAt } = staged;
    const key = `The next authority key ${publicKey}`;
    if (!held.includes(publicKey)) return [wrong('succession', `${key} is not held here`, PLACE)];
    if (now < activatesAt + PATIENCE_MS) {
      const found = `${key} is held here, and takes over ${fromNow(activatesAt - now)}`;
      return [fine('succession', found)];
    }
    const late = `${key} should have taken over ${fromNow(activatesAt - now)}`;
    return [
      holder !== null
        ? wrong('succession', late, 'Check the clock and the log of the authority')
        : warning('succession', `${late}; the next start activates it`, 'Start the authority'),
    ];
  }
  if (previous !== null) {
    const { publicKey, overlapUntil } = previous;
    const key = `The previous authority key ${publicKey}`;
    return [
      held.includes(publicKey)
        ? fine('succession', `${key} signs, too, and stops ${fromNow(overlapUntil - now)}`)
        : wrong(
            'succession',
            `${key} must still sign, but is not held here`,
            'Restore its key file',
          ),
    ];
  }
  const named = genesis.network_authority.public_key;
  const unknown = held.slice(1).find((key) => key !== named && !has(key));
  if (unknown === undefined) return [fine('succession', 'No succession is under way')];
  const found = `There is a next key ${unknown}, but no succession to it is staged`;
  const cure =
    'Stage it with mesh-na authority-key stage, or delete the key file if nothing was signed for it';
  return [warning('succession', found, cure)];
}
