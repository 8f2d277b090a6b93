/** Opens the configured head files and checks the state against them. */
import { storedChain, trustedKeys } from '../../authority/authority-keys.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { parseJson } from '../../base/json/parse.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import { readStateHead, type StateHead } from '../../protocol/records/state-head.ts';
import type { StatePosition, Store } from '../../store/store.ts';
import { type HeadFile, openHeadFile } from './head-file.ts';
import { judgeHeads } from './judge.ts';

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
