/**
 * A real HTTP server that answers agents like an authority whose key is replaced, with documents from the protocol
 * builders. A test decides what it publishes, and which keys sign.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SHA256 } from '../../src/base/crypto/digest.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { Fetch } from '../../src/client/options.ts';
import { authorityKeysDigest, keysAt } from '../../src/protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../../src/protocol/records/authority-succession.ts';
import { type GenesisBlock, genesisDigest } from '../../src/protocol/records/genesis.ts';
import { entriesDigest } from '../../src/protocol/records/revocation-list-delta.ts';
import {
  signatureOver,
  signedText,
  signRecord,
  soleSigner,
} from '../../src/protocol/records/signed-record.ts';
import { successionGenesis } from '../../src/protocol/records/succession-request.ts';
import { FIRST, HOUR, NETWORK, ROOT, START, signerOf } from './authority-chain.ts';
import { type TestClock, testClock } from './clock.ts';

export interface SuccessionAuthority extends AsyncDisposable {
  readonly url: string;
  /** Asks it without a connection, for agents that ask hundreds of times. */
  readonly fetch: Fetch;
  readonly clock: TestClock;
  /** The successions that it publishes; those whose time has come are in force. */
  successions: readonly AuthoritySuccession[];
  /** The sequence of the list before any succession; each succession adds one. */
  crlSequence: number;
  /** Answers that replace its own, by path; one with an error is sent with 401. */
  readonly instead: Map<string, () => JsonObject>;
  /** Its own answers to a body, by path. */
  readonly answers: Readonly<Record<string, (body: JsonObject) => JsonObject>>;
  /** Every request: path and body. */
  readonly asked: { readonly path: string; readonly body: JsonObject }[];
  genesis(): GenesisBlock;
  certificate(nodeKey: string, validHours?: number): JsonObject;
  /** The list as it would be with these keys. */
  list(sequence: number, signers: readonly Signer[]): JsonObject;
}

const VALID_TO = formatInstant(START + 100_000 * HOUR);

export const FIRST_GENESIS = genesisOf({
  network_name: NETWORK,
  network_version: 'v0.1',
  root_public_key: ROOT.publicKey,
  network_authority: {
    public_key: FIRST.publicKey,
    valid_from: formatInstant(START - HOUR),
    valid_to: VALID_TO,
  },
  allowed_crypto_suites: ['ed25519'],
  allowed_transports: ['quic'],
  policy_manifest: { hash: 'sha256:00', url: null },
  bootstrap_anchors: [],
});

function genesisOf(unsigned: Omit<GenesisBlock, 'signatures'>): GenesisBlock {
  const { signatures } = signRecord(unsigned, soleSigner(ROOT));
  return { ...unsigned, signatures: [...signatures] };
}

export async function startSuccessionAuthority(): Promise<SuccessionAuthority> {
  const clock = testClock(START);

  const inForce = () =>
    na.successions.filter(({ activates_at }) => Date.parse(activates_at) <= clock.now());

  function genesis(): GenesisBlock {
    const last = inForce().at(-1);
    if (last === undefined) return FIRST_GENESIS;
    const { signatures: _, ...next } = successionGenesis(FIRST_GENESIS, last, VALID_TO);
    return genesisOf(next);
  }

  /** A new list comes with each succession, and every twelve hours. */
  const sequence = () =>
    na.crlSequence + inForce().length + Math.floor((clock.now() - START) / (12 * HOUR));

  /** The current key, and the other key that signs during an overlap. */
  function signers(): Signer[] {
    const keys = keysAt(inForce(), clock.now());
    const ofState = (state: string) => keys.filter((key) => key.state === state);
    const found = [...ofState('current'), ...ofState('previous')];
    return found.length === 0 ? [FIRST] : found.map(({ public_key }) => signerOf(public_key));
  }

  function signedByAll(record: JsonObject, by: readonly Signer[] = signers()): JsonObject {
    const text = signedText(record);
    const signatures = by.map((signer) => signatureOver(text, soleSigner(signer)));
    return { ...record, signatures };
  }

  /** Records with one signature are signed by the older key. */
  function signedOnce(record: JsonObject): JsonObject {
    const signer = signers().at(-1) ?? FIRST;
    return { ...record, signature: signatureOver(signedText(record), soleSigner(signer)) };
  }

  const issued = new Map<string, JsonObject>();

  function list(sequence: number, by: readonly Signer[]): JsonObject {
    const issuer = by[0]?.publicKey ?? '';
    const unsigned = issued.get(`${sequence} ${issuer}`) ?? {
      crl_id: randomUUID(),
      sequence,
      issued_at: formatInstant(clock.now()),
      next_update: formatInstant(clock.now() + 24 * HOUR),
      issuer,
      revoked_certificates: [],
    };
    issued.set(`${sequence} ${issuer}`, unsigned);
    return signedByAll(unsigned, by);
  }

  function bulletin(): JsonObject {
    const issuer = signers()[0]?.publicKey ?? '';
    const signed = signedOnce({
      version: 1,
      network_name: NETWORK,
      issued_at: formatInstant(clock.now()),
      crl_sequence: sequence(),
      crl_digest: entriesDigest(issuer, [], SHA256),
      policy_id: 'p-1',
      genesis_digest: genesisDigest(genesis(), SHA256),
      log_size: 1,
    });
    const digest = authorityKeysDigest(na.successions, SHA256);
    return { ...signed, ...(na.successions.length > 0 && { authority_keys_digest: digest }) };
  }

  function certificate(node_public_key: string, validHours = 168): JsonObject {
    return signedByAll({
      // Nodes renew at a point of an overlap that is derived from the id: all of these in the middle.
      cert_id: `${randomUUID().slice(0, -8)}80000000`,
      node_public_key,
      network_name: NETWORK,
      roles: [],
      issued_at: formatInstant(clock.now()),
      expires_at: formatInstant(clock.now() + validHours * HOUR),
      issued_by: signers()[0]?.publicKey ?? '',
    });
  }

  const answers: SuccessionAuthority['answers'] = {
    '/genesis': genesis,
    '/authority-keys': () => ({
      network_name: NETWORK,
      root_public_key: ROOT.publicKey,
      keys: keysAt(na.successions, clock.now()),
      successions: [...na.successions],
    }),
    '/crl': () => list(sequence(), signers()),
    '/bulletin': bulletin,
    '/policy': () =>
      signedByAll({
        policy_id: 'p-1',
        issued_at: formatInstant(START),
        issued_by: signers()[0]?.publicKey ?? '',
        min_client_version: '0',
        allowed_ports: [443],
        allowed_services: [],
        routing: { preferred_transports: ['quic'], max_hops: 6 },
      }),
    '/join': ({ node_public_key }) => certificate(String(node_public_key)),
    '/renew': ({ node_public_key }) => certificate(String(node_public_key)),
    '/heartbeat': () => ({
      ack: true,
      server_time: formatInstant(clock.now()),
      next_heartbeat_seconds: 1800,
      notices: [],
      bulletin: bulletin(),
    }),
  };

  function answer(url: string, text: string) {
    const { pathname: path } = new URL(url, 'http://na');
    const body = text === '' ? {} : JSON.parse(text);
    na.asked.push({ path, body });
    const answer = na.instead.get(path) ?? answers[path];
    const made = answer?.(body) ?? {};
    const status = answer === undefined ? 404 : 'error' in made ? 401 : 200;
    return { status, text: JSON.stringify(made) };
  }

  // On a busy machine, clients would use connections that were closed meanwhile because they were idle.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    const asked = (await request.setEncoding('utf8').toArray()).join('');
    const { status, text } = answer(request.url ?? '', asked);
    response.writeHead(status).end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const na: SuccessionAuthority = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async fetch(url, { body = '' }) {
      const { status, text } = answer(url, body);
      return { ok: status === 200, status, headers: new Headers(), text: async () => text };
    },
    clock,
    successions: [],
    crlSequence: 1,
    instead: new Map(),
    answers,
    asked: [],
    genesis,
    certificate,
    list,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return na;
}
