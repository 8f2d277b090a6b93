/** The thread that makes long revocation lists: it holds their entries as bytes, and the authority's key. */
import { parentPort, workerData } from 'node:worker_threads';
import { type CrlIssuer, crlDocument } from '../authority/publication/crl-document.ts';
import { longTextSignerFromSeed } from '../crypto/ed25519.ts';
import type { CrlThreadIdentity, FromCrlThread, ToCrlThread } from './crl-thread.ts';

const port = parentPort;
if (port === null) throw new Error('The render runs as a worker thread');
const { seed, publicKey, keyId } = workerData as CrlThreadIdentity;
const issuer: CrlIssuer = { publicKey, keyId, sign: longTextSignerFromSeed(seed) };

let entries = Buffer.alloc(0);
let length = 0;

/**
 * Documents lie in a few buffers that are used again. The collector of garbage does not see the weight of
 * shared memory: a new buffer for each document would fill the machine before the old ones are collected.
 */
const buffers: { readonly bytes: Buffer; isFree: boolean }[] = [];

port.on('message', (message: ToCrlThread) => {
  if (message.type === 'add') add(message.entries);
  else if (message.type === 'render') render(message);
  else if (message.type === 'release') release(message.buffer);
  else port.close();
});
post({ type: 'ready' });

function post(message: FromCrlThread): void {
  port?.postMessage(message);
}

function add(text: string): void {
  if (length + text.length > entries.length) {
    const larger = Buffer.alloc(withHeadroom(length + text.length));
    entries.copy(larger);
    entries = larger;
  }
  length += entries.write(text, length, 'latin1');
}

function render({ order }: Extract<ToCrlThread, { type: 'render' }>): void {
  if (order.length > length)
    throw new Error('The revocation list names entries that are not there');
  let buffer = -1;
  const document = crlDocument(issuer, order, entries.subarray(0, order.length), (needed) => {
    buffer = takeBuffer(needed);
    return buffers[buffer]?.bytes ?? Buffer.alloc(0);
  });
  post({ type: 'rendered', document, buffer });
}

/** A free buffer that is large enough, or a new one in the place of a free one that is too small. */
function takeBuffer(needed: number): number {
  const fitting = buffers.findIndex(({ bytes, isFree }) => isFree && bytes.length >= needed);
  const outgrown = buffers.findIndex(({ isFree }) => isFree);
  const buffer = [fitting, outgrown, buffers.length].find((index) => index >= 0) ?? 0;
  if (fitting < 0) {
    const shared = new SharedArrayBuffer(withHeadroom(needed));
    buffers[buffer] = { bytes: Buffer.from(shared), isFree: false };
  }
  const taken = buffers[buffer];
  if (taken !== undefined) taken.isFree = false;
  return buffer;
}

function release(index: number): void {
  const buffer = buffers[index];
  if (buffer !== undefined) buffer.isFree = true;
}

/** Grows by an eighth, so that it is rarely outgrown. */
function withHeadroom(needed: number): number {
  return needed + Math.max(65_536, needed >> 3);
}
