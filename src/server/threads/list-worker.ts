/** The thread that renders long signed lists: it holds their entries, and signs them. */
import { parentPort, workerData } from 'node:worker_threads';
import {
  createListContent,
  type ListContent,
  type ListHead,
} from '../../authority/lists/list-document.ts';
import { longTextSignerFromSeed } from '../../base/crypto/ed25519.ts';
import { createDocumentMemory } from '../../protocol/contract/documents.ts';
import type { ListProcedures, ListThreadIdentity } from './list-thread.ts';
import { createPeer } from './rpc.ts';
import { type OpenSigner, openSigner } from './signer-thread.ts';

const port = parentPort;
if (port === null) throw new Error('The renderer of signed lists runs as a worker thread');
let opened = await openWith(workerData as ListThreadIdentity);

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

function render(list: number, head: ListHead) {
  let buffer = -1;
  const document = listOf(list).document(head, opened.signer, (needed) => {
    const taken = memory.take(needed);
    buffer = taken.buffer;
    return taken.bytes;
  });
  return { document, buffer };
}
