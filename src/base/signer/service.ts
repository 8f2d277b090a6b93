/**
 * Signs the texts that arrive on a socket, with one key or two. Anyone who can use the socket can have anything signed, so it
 * is opened for one user and optionally one group, and every signature is reported [signer-2].
 */
import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Signer } from '../crypto/primitives.ts';
import { KEY_HEADER, MOST_BYTES } from './protocol.ts';

/** Each process and each signing thread of an authority has one connection. */
const MOST_CONNECTIONS = 64;
/** The memory that incomplete texts on all connections may use together. */
const MOST_BYTES_HELD = 2 * MOST_BYTES;
/** How long a request may take to arrive. */
const ARRIVAL_MS = 60_000;
const MOST_HEAD_BYTES = 4096;

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
  const server = createServer(
    // The authority notices by the end of its connection that the signer has ended, so no idle one is ended.
    { keepAliveTimeout: 0, requestTimeout: ARRIVAL_MS, maxHeaderSize: MOST_HEAD_BYTES },
    answering(options),
  );
  server.on('clientError', (cause: NodeJS.ErrnoException, socket) => {
    // To vanish is no misuse.
    if (cause.code?.startsWith('HPE_'))
      options.misused('What arrived is not HTTP, or its head is too long');
    socket.destroy();
  });
  server.maxConnections = MOST_CONNECTIONS;
  await listening(server, path, isForGroup ? 0o117 : 0o177);
  // The umask has no effect on file systems with their own access lists.
  chmodSync(path, isForGroup ? 0o660 : 0o600);
  return {
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
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

function answering({ signer, second, signed, misused }: SignerServiceOptions) {
  const signers = second === null ? [signer] : [signer, second];
  let heldBytes = 0;

  function misuseBy({ headers }: IncomingMessage, bytes: number): string | null {
    if (headers['transfer-encoding'] !== undefined) return 'A text of unknown length was announced';
    if (bytes > MOST_BYTES) return `A text of ${bytes} bytes was announced`;
    if (heldBytes + bytes <= MOST_BYTES_HELD) return null;
    return 'Too much data is pending at once to fit in memory';
  }

  /** Rejects if the client vanishes, or is too slow. */
  async function textIn(asked: IncomingMessage, bytes: number): Promise<Buffer> {
    const text = Buffer.allocUnsafe(bytes);
    let end = 0;
    heldBytes += bytes;
    try {
      for await (const piece of asked as AsyncIterable<Buffer>) end += piece.copy(text, end);
      return text;
    } finally {
      heldBytes -= bytes;
    }
  }

  function answerTo({ method, url, headers }: IncomingMessage, text: Buffer): Answer {
    if (method === 'GET' && url === '/keys') {
      return [200, signers.map(({ publicKey }) => publicKey).join('\n')];
    }
    if (method !== 'POST' || url !== '/sign') return [404, `There is no ${method} ${url}`];
    const named = headers[KEY_HEADER];
    if (named === undefined) return [400, 'The header X-Mesh-Key is missing'];
    const key = signers.find(({ publicKey }) => publicKey === named);
    if (key === undefined) return [404, `The key ${named} is not held here`];
    const signature = key.sign(text);
    signed(kindOf(text), text.length, key.publicKey);
    return [200, signature];
  }

  return async (asked: IncomingMessage, response: ServerResponse) => {
    const bytes = Number(asked.headers['content-length'] ?? 0);
    const misuse = misuseBy(asked, bytes);
    if (misuse !== null) {
      misused(misuse);
      asked.destroy();
      return;
    }
    const text = await textIn(asked, bytes).catch(() => null);
    if (text === null) return;
    const [status, body] = answerTo(asked, text);
    response.statusCode = status;
    response.setHeader('content-type', 'text/plain');
    response.end(`${body.slice(0, MOST_ANSWER)}\n`);
  };
}

type Answer = readonly [status: number, body: string];

/** Of an answer, in characters. */
const MOST_ANSWER = 1024;

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
