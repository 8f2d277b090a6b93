/** The thread that makes long revocation lists: it holds their entries as bytes, and the authority's key. */
import { parentPort, workerData } from 'node:worker_threads';
import { type CrlIssuer, crlDocument } from '../authority/crl-document.ts';
import { longTextSignerFromSeed } from '../crypto/ed25519.ts';
import type { FromPress, PressIdentity, ToPress } from './press-thread.ts';

const port = parentPort;
if (port === null) throw new Error('The press runs as a worker thread');
const { seed, publicKey, keyId } = workerData as PressIdentity;
const issuer: CrlIssuer = { publicKey, keyId, sign: longTextSignerFromSeed(seed) };

let entries = Buffer.alloc(0);
let length = 0;

/**
 * Documents lie in a few rooms that are used again. The collector of garbage does not see the weight of
 * shared memory: a new room for each document would fill the machine before the old ones are collected.
 */
const rooms: { readonly bytes: Buffer; isFree: boolean }[] = [];

port.on('message', (message: ToPress) => {
  if (message.type === 'add') add(message.entries);
  else if (message.type === 'press') press(message);
  else if (message.type === 'release') release(message.room);
  else port.close();
});
post({ type: 'ready' });

function post(message: FromPress): void {
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

function press({ order }: Extract<ToPress, { type: 'press' }>): void {
  if (order.length > length)
    throw new Error('The revocation list names entries that are not there');
  let room = -1;
  const document = crlDocument(issuer, order, entries.subarray(0, order.length), (needed) => {
    room = takeRoom(needed);
    return rooms[room]?.bytes ?? Buffer.alloc(0);
  });
  post({ type: 'pressed', document, room });
}

/** A free room that is large enough, or a new one in the place of a free one that is too small. */
function takeRoom(needed: number): number {
  const fitting = rooms.findIndex(({ bytes, isFree }) => isFree && bytes.length >= needed);
  const outgrown = rooms.findIndex(({ isFree }) => isFree);
  const room = [fitting, outgrown, rooms.length].find((index) => index >= 0) ?? 0;
  if (fitting < 0) {
    const shared = new SharedArrayBuffer(withHeadroom(needed));
    rooms[room] = { bytes: Buffer.from(shared), isFree: false };
  }
  const taken = rooms[room];
  if (taken !== undefined) taken.isFree = false;
  return room;
}

function release(index: number): void {
  const room = rooms[index];
  if (room !== undefined) room.isFree = true;
}

/** Grows by an eighth, so that it is rarely outgrown. */
function withHeadroom(needed: number): number {
  return needed + Math.max(65_536, needed >> 3);
}
