/**
 * Head files: locked while in use, and replaced atomically. They are opened at startup, where the heads in them decide
 * whether the state was rolled back [backup-9].
 */
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { storedChain, trustedKeys } from '../../authority/authority-keys.ts';
import { OlderState } from '../../authority/open.ts';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { syncFolderAsync } from '../../base/durable-file.ts';
import { parseJson } from '../../base/json/parse.ts';
import { readNamedFile } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import { readStateHead, type StateHead } from '../../protocol/records/state-head.ts';
import { lockFile } from '../../store/lmdb/folder-lock.ts';
import type { StatePosition, Store } from '../../store/store.ts';

export interface HeadSettings {
  readonly paths: readonly string[];
  /** Whether a missing head, or one from before a restore, is accepted at this start. */
  readonly acceptsNew: boolean;
}

export interface OpenedHeads {
  readonly files: readonly HeadFile[];
  readonly heads: readonly StateHead[];
  readonly position: StatePosition;
}

/**
 * `firstKey` is the authority key of a state that names none. Throws a one-sentence error if the start is refused, which
 * is an `OlderState` if the state was rolled back. Null without head files.
 */
export async function openHeads(
  { paths, acceptsNew }: HeadSettings,
  store: Store,
  firstKey: string,
): Promise<OpenedHeads | null> {
  if (paths.length === 0) return null;
  const files: HeadFile[] = [];
  try {
    for (const path of paths) files.push(openHeadFile(path));
    const chain = storedChain(await store.subjectsOf('authority-key'));
    const publicKeys = trustedKeys(chain, { authority_public_key: firstKey });
    const kept = files.map((file) => ({
      path: file.path,
      head: headIn(file.path, file.read(), publicKeys),
    }));
    const position = await store.position();
    const state = { position, hashAt: store.auditHashAt };
    await judgeHeads(kept, state, acceptsNew);
    return { files, heads: kept.flatMap(({ head }) => head ?? []), position };
  } catch (cause) {
    for (const file of files) file.release();
    throw cause;
  }
}

/** Null if there is no text. Throws a one-sentence error if the text is not a head signed by one of the keys. */
export function headIn(
  path: string,
  text: string | null,
  publicKeys: readonly string[],
): StateHead | null {
  if (text === null) return null;
  const head = headOf(text);
  if (head !== null && isSignedByAny(head, publicKeys, verifySignature)) return head;
  throw new Error(`The head file ${path} does not hold a head that this authority has signed`);
}

function headOf(text: string): StateHead | null {
  try {
    return readStateHead(parseJson(text));
  } catch {
    return null;
  }
}

export interface KeptHead {
  readonly path: string;
  /** Null if there is no file. */
  readonly head: StateHead | null;
}

interface JudgedState {
  readonly position: StatePosition;
  /** The hash of the entry with this number, starting at 1; null if there is none. */
  hashAt(entry: number): Promise<string | null>;
}

/**
 * Throws a one-sentence error if the state may not be served, which is an `OlderState` if it was rolled back. `accepts`
 * means that the operator allows, for this start, a missing head or one from before a restore.
 */
export async function judgeHeads(
  heads: readonly KeptHead[],
  state: JudgedState,
  accepts: boolean,
): Promise<void> {
  for (const kept of heads) await judge(kept, state, accepts);
  if (accepts && !heads.some(isNew(state))) {
    throw new Error(
      '--new-head is for one start only, and there is no new head to accept; remove it',
    );
  }
}

function isNew({ position }: JudgedState) {
  return ({ head }: KeptHead) => head === null || head.epoch < position.epoch;
}

async function judge(
  { path, head }: KeptHead,
  { position, hashAt }: JudgedState,
  accepts: boolean,
): Promise<void> {
  if (head === null) {
    // A state without changes has no older copy.
    if (accepts || position.revision === 0) return;
    throw new Error(
      `The head file ${path} is missing: put it back. Only if the state is certain to be the newest, start once with --new-head`,
    );
  }
  if (head.epoch > position.epoch) {
    throw behind(path, `epoch ${head.epoch}, while the state is at epoch ${position.epoch}`);
  }
  if (head.epoch < position.epoch) {
    if (accepts) return;
    throw new Error(
      `The head file ${path} is from before a restore; start once with --new-head to accept that`,
    );
  }
  if (head.audit_length > position.auditLength || head.revision > position.revision) {
    const [theirs, ours] = [head.revision, position.revision];
    throw behind(path, `revision ${theirs}, while the state ends at ${ours}`);
  }
  const hash = head.audit_length === 0 ? head.audit_head : await hashAt(head.audit_length);
  if (hash === head.audit_head) return;
  throw new Error(
    `The head file ${path} belongs to a different history: audit entry ${head.audit_length} of the state differs`,
  );
}

function behind(path: string, what: string): OlderState {
  return new OlderState(
    `The state is older than the head in ${path}, which recorded ${what}: put the newer state in its place, or restore it with what came later (mesh-na restore)`,
  );
}

export type HeadFile = ReturnType<typeof openHeadFile>;

/** Throws a one-sentence error if another process uses the file. */
export function openHeadFile(path: string) {
  const lock = lockFile(
    `${path}.lock`,
    (holder) =>
      `The head file ${path} is in use by another process${holder}: a copy of this state is already being served`,
  );
  removeDrafts(path);
  let known = contentOf(path);
  return {
    path,
    /** As it was found, or last written here; null if there is none. */
    read: (): string | null => known,
    /** Resolves when the text is on disk; rejects if another process has written the file. */
    async write(text: string): Promise<void> {
      await replace(path, known, text);
      known = text;
    },
    release: (): void => lock.release(),
  };
}

/** Removes drafts left behind by killed processes. The caller must hold the lock. */
function removeDrafts(path: string): void {
  const draft = basename(draftOf(path));
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(draft)) rmSync(join(dirname(path), name), { force: true });
  }
}

/** The prefix of the names of draft files that will replace it. */
function draftOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.new.`);
}

function contentOf(path: string): string | null {
  return existsSync(path) ? readNamedFile(path, MOST_BYTES.key).toString() : null;
}

/**
 * Others may be able to write to the folder, so the draft has an unpredictable new name, and nobody can redirect the
 * write.
 */
async function replace(path: string, known: string | null, text: string): Promise<void> {
  const fresh = `${draftOf(path)}${systemRuntime.uuid()}`;
  const file = await open(fresh, 'wx', 0o644);
  try {
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    // Compared and replaced synchronously: syncing takes long enough for another process to write the file.
    if (contentOf(path) !== known) {
      throw new Error(
        `The head file ${path} was written by another process: a copy of this state is being served elsewhere`,
      );
    }
    renameSync(fresh, path);
  } catch (cause) {
    await rm(fresh, { force: true });
    throw cause;
  }
  await syncFolderAsync(dirname(path));
}
