/**
 * The bare server's invites and joins: it parses, verifies, signs, and stores the same as the authority, and answers
 * once the rows are on disk. It has no state machines, limits, nonces, log, or audit chain.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { open } from 'lmdb';
import { SEED_BYTES, signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';

const HOUR = 3_600_000;
const PROOF_HEADERS = ['key-id', 'timestamp', 'nonce', 'signature'] as const;

type Answers = (body: JsonObject, header: (name: string) => string) => Promise<JsonObject | null>;

export interface BareNetwork {
  /** On the disk of the authority's data folder. */
  readonly folder: string;
  /** In base64. */
  readonly operatorKey: string;
  readonly audience: string;
}

export function bareEnrollments({ folder, operatorKey, audience }: BareNetwork) {
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

  async function invite(
    body: JsonObject,
    header: (name: string) => string,
  ): Promise<JsonObject | null> {
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
    return body.count === undefined ? { ...tokens[0] } : { ...tokens[0], tokens };
  }

  async function join(body: JsonObject): Promise<JsonObject | null> {
    const { signature, ...signed } = body;
    const nodeKey = String(body.node_public_key);
    if (!verifySignature(nodeKey, canonicalJson(signed), String(signature))) return null;
    const inviteId = idOf(String(body.invite_token));
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
    const signatures = [{ key_id: issuer.publicKey, sig }];
    const certificate = { ...unsigned, signatures };
    await store(
      { [inviteId]: used, [unsigned.cert_id]: certificate },
      { event: 'node_joined', cert_id: unsigned.cert_id, node_public_key: nodeKey },
    );
    return certificate;
  }

  return {
    '/admin/invite': (res: HttpResponse, req: HttpRequest) => answer(res, req, invite),
    '/join': (res: HttpResponse, req: HttpRequest) => answer(res, req, join),
  };
}

function answer(res: HttpResponse, req: HttpRequest, answers: Answers): void {
  const headers = new Map(PROOF_HEADERS.map((name) => [name, req.getHeader(`x-admin-${name}`)]));
  const chunks: Buffer[] = [];
  let gone = false;
  res.onAborted(() => {
    gone = true;
  });
  res.onData((chunk, isLast) => {
    // The bytes are valid only during this call.
    chunks.push(Buffer.from(Buffer.from(chunk)));
    if (!isLast) return;
    const body = JSON.parse(Buffer.concat(chunks).toString()) as JsonObject;
    void answers(body, (name) => headers.get(name as 'nonce') ?? '').then((made) => {
      if (gone) return;
      res.cork(() => {
        res.writeStatus(made === null ? '401 Unauthorized' : '200 OK');
        res.writeHeader('Content-Type', 'application/json');
        res.end(JSON.stringify(made));
      });
    });
  });
}

function idOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
