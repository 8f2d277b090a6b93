/**
 * Entry of the bare server's process: the cost of uWebSockets.js, libsodium and LMDB alone. It has no documents; the run
 * passes the bytes that the authority serves.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { open } from 'lmdb';
import sodium from 'sodium-native';
import { SEED_BYTES, signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';

export interface StaticAnswer {
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

export interface SignatureCheck {
  /** Both in base64. */
  readonly publicKey: string;
  readonly signature: string;
  readonly text: string;
}

/** The cost of a POST whose signatures are checked and whose body is not parsed. */
export interface Verification {
  readonly path: string;
  readonly checks: readonly SignatureCheck[];
  readonly answer: string;
}

export interface BareNetwork {
  /** On the disk of the authority's data folder. */
  readonly folder: string;
  /** In base64. */
  readonly operatorKey: string;
  readonly audience: string;
}

export interface BareWork {
  readonly answers?: readonly StaticAnswer[];
  readonly verifications?: readonly Verification[];
  /** Absent for a server that enrolls no nodes. */
  readonly network?: BareNetwork;
}

/** The body of an answer with the status 200; null for 401. */
type Answer = string | null;
type Header = (name: string) => string;

const HOUR = 3_600_000;
const PROOF_HEADERS = ['key-id', 'timestamp', 'nonce', 'signature'] as const;

const uws: typeof import('uWebSockets.js') & { _cfg(name: string): void } = createRequire(
  import.meta.url,
)('uWebSockets.js');
// As in the authority, no header names the library.
uws._cfg('silent');
const app = uws.App();

process.once('message', serve);
process.once('disconnect', () => process.exit());

function serve({ answers = [], verifications = [], network }: BareWork): void {
  for (const { path, headers, body } of answers) {
    const bytes = Buffer.from(body);
    app.get(path, (res) => {
      res.writeStatus('200 OK');
      for (const [name, value] of headers) res.writeHeader(name, value);
      res.end(bytes);
    });
  }
  post('/heartbeat', (body) => (isSigned(body.toString()) ? '{"ack":true}' : null));
  for (const { path, ...verification } of verifications) post(path, verifier(verification));
  if (network !== undefined) serveEnrollments(network);
  app.listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('The bare server cannot listen');
    process.send?.({ port: uws.us_socket_local_port(socket) });
  });
}

function post(
  path: string,
  answer: (body: Buffer, header: Header) => Answer | Promise<Answer>,
  headers: readonly string[] = [],
): void {
  app.post(path, (res: HttpResponse, req: HttpRequest) => {
    const given = new Map(headers.map((name) => [name, req.getHeader(`x-admin-${name}`)]));
    let earlier: Buffer | null = null;
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    res.onData((chunk, isLast) => {
      const bytes =
        earlier === null ? Buffer.from(chunk) : Buffer.concat([earlier, Buffer.from(chunk)]);
      if (!isLast) {
        // The bytes are valid only during this call.
        earlier = Buffer.from(bytes);
        return;
      }
      const made = answer(bytes, (name) => given.get(name) ?? '');
      if (made instanceof Promise) void made.then(send);
      else send(made);
    });

    function send(body: Answer): void {
      if (isGone) return;
      res.cork(() => {
        res.writeStatus(body === null ? '401 Unauthorized' : '200 OK');
        res.writeHeader('Content-Type', 'application/json');
        res.end(body ?? '{"ack":false}');
      });
    }
  });
}

function isSigned(text: string): boolean {
  const body = JSON.parse(text) as { [name: string]: unknown };
  const signed: { [name: string]: unknown } = {};
  for (const name of Object.keys(body).sort()) {
    if (name !== 'signature') signed[name] = body[name];
  }
  return sodium.crypto_sign_verify_detached(
    Buffer.from(String(body.signature), 'base64'),
    Buffer.from(JSON.stringify(signed)),
    Buffer.from(String(body.node_public_key), 'base64'),
  );
}

function verifier({ checks, answer }: Omit<Verification, 'path'>): () => Answer {
  const ready = checks.map(({ publicKey, signature, text }) => ({
    key: Buffer.from(publicKey, 'base64'),
    sig: Buffer.from(signature, 'base64'),
    text: Buffer.from(text),
  }));
  return () => {
    const areValid = ready.every(({ key, sig, text }) =>
      sodium.crypto_sign_verify_detached(sig, text, key),
    );
    return areValid ? answer : null;
  };
}

/**
 * Invites and joins: parses, verifies, signs, and stores the same as the authority, and answers once the rows are on
 * disk. There are no state machines, limits, nonces, log, or audit chain.
 */
function serveEnrollments({ folder, operatorKey, audience }: BareNetwork): void {
  // As in the authority, a write is acknowledged when it is on disk.
  const env = open({ path: folder, overlappingSync: false });
  const rows = env.openDB<string, string>({ name: 'rows', encoding: 'string' });
  const log = env.openDB<string, number>({ name: 'log', encoding: 'string' });
  const issuer = signerFromSeed(randomBytes(SEED_BYTES));
  let entries = 0;

  /** Resolves when the rows, and an entry of the log, are on disk. */
  function store(changed: { readonly [id: string]: JsonObject }, event: JsonObject) {
    for (const [id, row] of Object.entries(changed)) void rows.put(id, JSON.stringify(row));
    entries += 1;
    return log.put(entries, JSON.stringify(event));
  }

  async function invite(bytes: Buffer, header: Header): Promise<Answer> {
    const body = JSON.parse(bytes.toString()) as JsonObject;
    const signed = {
      body,
      key_id: header('key-id'),
      timestamp: header('timestamp'),
      nonce: header('nonce'),
      v: 2,
      method: 'POST',
      path: '/admin/invite',
      query: {},
      audience,
    };
    if (!verifySignature(operatorKey, canonicalJson(signed), header('signature'))) return null;
    const expiresAt = new Date(Date.now() + HOUR).toISOString();
    const made: Record<string, JsonObject> = {};
    const tokens = Array.from({ length: Number(body.count ?? 1) }, () => {
      const token = randomBytes(24).toString('hex');
      made[idOf(token)] = { roles: ['member'], expires_at: expiresAt, used_at: null };
      return { token_id: token, expires_at: expiresAt };
    });
    await store(made, { event: 'invite_created', tokens: Object.keys(made) });
    return JSON.stringify(body.count === undefined ? tokens[0] : { ...tokens[0], tokens });
  }

  async function join(bytes: Buffer): Promise<Answer> {
    const { signature, ...signed } = JSON.parse(bytes.toString()) as JsonObject;
    const nodeKey = String(signed.node_public_key);
    if (!verifySignature(nodeKey, canonicalJson(signed), String(signature))) return null;
    const inviteId = idOf(String(signed.invite_token));
    const found = rows.get(inviteId);
    if (found === undefined) return null;
    const used = { ...(JSON.parse(found) as JsonObject), used_at: Date.now(), used_by: nodeKey };
    const unsigned = {
      cert_id: randomUUID(),
      node_public_key: nodeKey,
      roles: ['member'],
      issued_at: new Date().toISOString(),
      valid_until: new Date(Date.now() + HOUR).toISOString(),
      issuer: issuer.publicKey,
    };
    const sig = issuer.sign(canonicalJson(unsigned));
    const certificate = { ...unsigned, signatures: [{ key_id: issuer.publicKey, sig }] };
    await store(
      { [inviteId]: used, [unsigned.cert_id]: certificate },
      { event: 'node_joined', cert_id: unsigned.cert_id, node_public_key: nodeKey },
    );
    return JSON.stringify(certificate);
  }

  post('/admin/invite', invite, PROOF_HEADERS);
  post('/join', join);
}

function idOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
