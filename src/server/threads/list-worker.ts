/** The thread that renders long signed lists: it holds their entries, and signs them. */
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import {
  createListContent,
  type ListContent,
  type ListHead,
} from '../../authority/lists/list-document.ts';
import { longTextSignerFromSeed } from '../../base/crypto/ed25519.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { createDocumentMemory } from '../../protocol/contract/documents.ts';
import { isSignerUnavailable } from '../../protocol/refusals.ts';
import type { ListProcedures, ListThreadIdentity } from './list-thread.ts';
import { createPeer } from './rpc.ts';
import { type OpenSigner, openSigner } from './signer-thread.ts';

const port = parentPort;
if (port === null) throw new Error('The renderer of signed lists runs as a worker thread');
let opened = await openWith(workerData as ListThreadIdentity);

/** Far longer than a signer takes to restart. */
const SIGNER_BACK_MS = 10_000;
const RETRY_MS = 50;

const lists: ListContent[] = [];

const memory = createDocumentMemory();

/** What is asked is done in order, although opening other keys may take a while. */
let handled: Promise<unknown> = Promise.resolve();
function inOrder<Given extends readonly unknown[], Result>(
  handle: (...given: Given) => Result | Promise<Result>,
): (...given: Given) => Promise<Result> {
  return (...given) => {
    const result = handled.then(() => handle(...given));
    handled = result;
    result.catch(endThread);
    return result;
  };
}

/** By an uncaught error, which the authority takes for the failure that it is. */
function endThread(cause: unknown): void {
  setImmediate(() => {
    throw cause;
  });
}

createPeer(port, {
  ready: () => undefined,
  open: inOrder((form) => {
    lists.push(createListContent(form));
  }),
  add: inOrder((list, entries) => listOf(list).add(entries)),
  render: inOrder(render),
  release: inOrder(memory.release),
  use: inOrder(use),
  exit: inOrder(async () => {
    await opened.close();
    port.close();
  }),
} satisfies ListProcedures);

function openWith({ keySource, keys }: ListThreadIdentity): Promise<OpenSigner> {
  return openSigner(keySource, keys, longTextSignerFromSeed);
}

async function use(identity: ListThreadIdentity): Promise<void> {
  const before = opened;
  opened = await openWith(identity);
  await before.close();
}

function listOf(list: number): ListContent {
  const held = lists[list];
  if (held === undefined) throw new Error(`The list ${list} was not opened`);
  return held;
}

/**
 * The version is on disk, so it has to be signed: the signer is waited for, to which this thread may connect again
 * a moment later than the one that has decided the version.
 */
async function render(list: number, head: ListHead) {
  for (const began = systemRuntime.elapsed(); ; await delay(RETRY_MS)) {
    try {
      return renderNow(list, head);
    } catch (cause) {
      if (!isSignerUnavailable(cause) || systemRuntime.elapsed() - began > SIGNER_BACK_MS)
        throw cause;
    }
  }
}

function renderNow(list: number, head: ListHead) {
  let buffer = -1;
  try {
    const document = listOf(list).document(head, opened.signer, (needed) => {
      const taken = memory.take(needed);
      buffer = taken.buffer;
      return taken.bytes;
    });
    return { document, buffer };
  } catch (cause) {
    if (buffer !== -1) memory.release(buffer);
    throw cause;
  }
}
