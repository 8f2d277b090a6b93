/**
 * Entry of the bare server's process: the cost of uWebSockets.js and libsodium alone. It has no documents; the run
 * passes the bytes that the authority serves.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { createRequire } from 'node:module';
import sodium from 'sodium-native';
import { type BareNetwork, bareEnrollments } from './bare-enrollments.ts';

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

export interface BareWork {
  readonly answers?: readonly StaticAnswer[];
  readonly verifications?: readonly Verification[];
  /** Null for a server that enrolls no nodes. */
  readonly network?: BareNetwork | null;
}

const uws: typeof import('uWebSockets.js') & { _cfg(name: string): void } = createRequire(
  import.meta.url,
)('uWebSockets.js');
// As in the authority, no header names the library.
uws._cfg('silent');

process.once('message', serve);
process.once('disconnect', () => process.exit());

function serve({ answers = [], verifications = [], network = null }: BareWork): void {
  const app = uws.App();
  app.post('/heartbeat', acceptHeartbeat);
  for (const { path, headers, body } of answers) {
    const bytes = Buffer.from(body);
    app.get(path, (res) => {
      res.writeStatus('200 OK');
      for (const [name, value] of headers) res.writeHeader(name, value);
      res.end(bytes);
    });
  }
  for (const verification of verifications) {
    app.post(verification.path, verifier(verification));
  }
  if (network !== null) {
    for (const [path, handle] of Object.entries(bareEnrollments(network))) {
      app.post(path, handle);
    }
  }
  app.listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('The bare server cannot listen');
    process.send?.({ port: uws.us_socket_local_port(socket) });
  });
}

function acceptHeartbeat(res: HttpResponse): void {
  let earlier: Buffer | null = null;
  res.onAborted(() => undefined);
  res.onData((chunk, isLast) => {
    const bytes =
      earlier === null ? Buffer.from(chunk) : Buffer.concat([earlier, Buffer.from(chunk)]);
    if (!isLast) {
      earlier = Buffer.from(bytes);
      return;
    }
    const signed = isSigned(bytes.toString());
    res.cork(() => {
      res.writeStatus(signed ? '200 OK' : '401 Unauthorized');
      res.writeHeader('Content-Type', 'application/json');
      res.end(signed ? '{"ack":true}' : '{"ack":false}');
    });
  });
}

function verifier({ checks, answer }: Verification): (res: HttpResponse) => void {
  const ready = checks.map(({ publicKey, signature, text }) => ({
    key: Buffer.from(publicKey, 'base64'),
    sig: Buffer.from(signature, 'base64'),
    text: Buffer.from(text),
  }));
  return (res) => {
    res.onAborted(() => undefined);
    res.onData((_, isLast) => {
      if (!isLast) return;
      const asExpected = ready.every(({ key, sig, text }) =>
        sodium.crypto_sign_verify_detached(sig, text, key),
      );
      res.cork(() => {
        res.writeStatus(asExpected ? '200 OK' : '500 Internal Server Error');
        res.writeHeader('Content-Type', 'application/json');
        res.end(answer);
      });
    });
  };
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
