/**
 * Signs the texts that arrive on a socket, with one key or two. Anyone who can use the socket can have anything signed, so it
 * is opened for one user and optionally one group, and every signature is reported [signer-2].
 */
import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Signer } from '../crypto/primitives.ts';
import {
  createSignerReader,
  KEY_BYTES,
  MESSAGE,
  type MessageType,
  MOST_BYTES,
  message,
} from './protocol.ts';

/** Each process and each signing thread of an authority has one connection. */
const MOST_CONNECTIONS = 64;
/** The memory that incomplete texts on all connections may use together. */
const MOST_BYTES_HELD = 2 * MOST_BYTES;

export interface SignerServiceOptions {
  readonly path: string;
  /** Whether the group of the socket has the same access as its owner. */
  readonly isForGroup: boolean;
  readonly signer: Signer;
  /** The next or the previous key during a succession; null if there is none. */
  readonly second: Signer | null;
  /** A text of this kind was signed by this key. */
  signed(kind: string, bytes: number, publicKey: string): void;
  /** A connection was ended because of what it sent. */
  misused(problem: string): void;
}

export interface SignerService {
  /** Stops accepting requests and removes the socket. */
  close(): Promise<void>;
}

/** Rejects with a one-sentence error if the socket cannot be opened. */
export async function startSignerService(options: SignerServiceOptions): Promise<SignerService> {
  const { path, isForGroup } = options;
  await removeAbandoned(path);
  const connections = new Set<Socket>();
  const held = { bytes: 0 };
  const server = createServer((socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    serve(socket, held, options);
  });
  server.maxConnections = MOST_CONNECTIONS;
  await listening(server, path, isForGroup ? 0o117 : 0o177);
  // The umask has no effect on file systems with their own access lists.
  chmodSync(path, isForGroup ? 0o660 : 0o600);
  return {
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of connections) socket.destroy();
      return closed;
    },
  };
}

/** The socket is never open for others, not even for the moment before its mode is set. */
function listening(server: Server, path: string, mask: number): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    server.once('error', ({ message: why }) =>
      reject(new Error(`${path} cannot be opened: ${why}`)),
    );
    const before = process.umask(mask);
    // The socket is created before this returns.
    server.listen(path, resolve);
    process.umask(before);
  });
}

/**
 * Removes the socket of a signer that was killed. A socket that answers, or any other kind of file, belongs to somebody
 * else.
 */
async function removeAbandoned(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error(`${path} is not a socket, so it is not replaced`);
  const answers = await new Promise<boolean>((resolve) => {
    const attempt = connect(path, () => {
      attempt.destroy();
      resolve(true);
    }).once('error', () => resolve(false));
  });
  if (answers) throw new Error(`Another process is listening at ${path}`);
  rmSync(path);
}

function serve(
  socket: Socket,
  held: { bytes: number },
  { signer, second, signed, misused }: SignerServiceOptions,
): void {
  const signers = second === null ? [signer] : [signer, second];
  const publicKeys = signers.map(({ publicKey }) => Buffer.from(publicKey, 'base64'));
  /** Bytes of a text that has not completely arrived. */
  let waiting = 0;

  function answer(type: MessageType, ...body: readonly Uint8Array[]): void {
    socket.cork();
    for (const part of message(type, ...body)) socket.write(part);
    socket.uncork();
  }

  function sign(key: Signer, text: Buffer): void {
    answer(MESSAGE.signature, Buffer.from(key.sign(text), 'base64'));
    signed(kindOf(text), text.length, key.publicKey);
  }

  function signWith(body: Buffer): void {
    const publicKey = body.subarray(0, KEY_BYTES).toString('base64');
    const key = signers.find((held) => held.publicKey === publicKey);
    if (key === undefined) {
      answer(MESSAGE.refused, Buffer.from(`The key ${publicKey} is not held here`));
    } else sign(key, body.subarray(KEY_BYTES));
  }

  function fail(problem: string): void {
    misused(problem);
    socket.destroy();
  }

  const read = createSignerReader(MOST_BYTES, (type, body) => {
    held.bytes -= waiting;
    waiting = 0;
    if (type === MESSAGE.askSignature) return sign(signer, body);
    if (type === MESSAGE.askSignatureWith && body.length >= KEY_BYTES) return signWith(body);
    if (type === MESSAGE.askKey && body.length === 0) {
      return answer(MESSAGE.key, ...publicKeys.slice(0, 1));
    }
    if (type === MESSAGE.askKeys && body.length === 0) return answer(MESSAGE.keys, ...publicKeys);
    answer(MESSAGE.refused, Buffer.from(`There is no message of type ${type}`));
  });

  socket.on('data', (piece: Buffer) => {
    waiting += piece.length;
    held.bytes += piece.length;
    if (held.bytes > MOST_BYTES_HELD)
      return fail('Too much data is pending at once to fit in memory');
    // A client that does not read its answers is disconnected.
    if (socket.writableLength > MOST_WAITING) return fail('Answers are not being read');
    try {
      read(piece);
    } catch (cause) {
      fail(`${cause instanceof Error ? cause.message : cause} was announced`);
    }
  });
  socket.on('error', () => socket.destroy());
  socket.once('close', () => {
    held.bytes -= waiting;
    waiting = 0;
  });
}

const MOST_WAITING = 1024 ** 2;

/** Canonical JSON is sorted by name, so records of one kind begin alike. */
const BEGINNINGS: readonly (readonly [kind: string, beginning: RegExp])[] = [
  ['challenge', /^mesh-na signer 1\n/],
  ['link', /^mesh-na link 1\n/],
  ['heartbeat_sessions', /^mesh-na session (?:box )?1\n/],
  ['key_possession', /^mesh-na authority key 1\n/],
  ['succession', /^\{"activates_at":/],
  ['succession_request', /^\{"format":"mesh-na-succession-request"/],
  ['join_certificate', /^\{"cert_id":/],
  ['revocation_list', /^\{"crl_id":"[^"]*","issued_at":/],
  ['revocation_list_revision', /^\{"crl_id":"[^"]*","entries_digest":/],
  ['revocation_feed', /^\{"feed_id":/],
  ['webhook', /^\{"body_sha256":/],
  ['bulletin', /^\{(?:"authority_keys_digest":"[^"]*",)?"crl_digest":/],
  ['attestation', /^\{"attestation_id":/],
  ['treaty', /^\{"expires_at":"[^"]*","issued_at":"[^"]*","issued_by":/],
  ['state_head', /^\{"audit_head":"[^"]*","audit_length":\d+,"crl_sequence":/],
  ['backup', /^\{"audit_head":"[^"]*","audit_length":\d+,"created_at":/],
  ['agreement', /^\{"agreed_terms":/],
  ['offer', /^\{"created_at":"[^"]*","expires_at":/],
  ['boundary_decision', /^\{"agreement_id":[^,]*,"authorized":/],
  ['commitment', /^\{"agreement_id":[^,]*,"capability_count":/],
  ['nullifier', /^\{"expires_at":"[^"]*","issued_at":"[^"]*","nonce":/],
  ['consensus', /^\{"cascade_assessment_digest":/],
  ['data_intent', /^\{"agent_sovereign_id":/],
  ['data_license', /^\{"allowed_access_types":/],
  ['trust_evidence', /^\{"evaluated_at":/],
  ['vote', /^\{"context_digest":/],
  // Operators choose its members, except for those of the manifest.
  ['policy', /^\{.*"min_client_version":/s],
];

/** Where every beginning ends. */
const BEGINNING_BYTES = 512;

/** The kind of the text; `other` if the authority is not known to sign such texts. */
export function kindOf(text: Uint8Array): string {
  const start = Buffer.from(text.buffer, text.byteOffset, Math.min(text.length, BEGINNING_BYTES));
  const beginning = start.toString('latin1');
  return BEGINNINGS.find(([, pattern]) => pattern.test(beginning))?.[0] ?? 'other';
}
