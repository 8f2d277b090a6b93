/** What is checked of an authority from outside, as any client sees it. */

import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import Type from 'typebox';
import { bareHost } from '../../base/bare-host.ts';
import { messageOf } from '../../base/error-message.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { AuthorityError } from '../../client/authority-error.ts';
import { textOf } from '../../client/body.ts';
import { publicCalls } from '../../client/calls.ts';
import { createVerifier } from '../../client/offline.ts';
import type { Fetch, ServerOptions } from '../../client/options.ts';
import { SovereignDocument } from '../../protocol/answers/documents.ts';
import { GenesisBlock } from '../../protocol/records/genesis.ts';
import { instantOf, Whole } from '../../protocol/records/record.ts';
import type { CertificateRevocationList } from '../../protocol/records/revocation-list.ts';
import { Posture } from '../../protocol/rows/posture.ts';
import { ending, type Finding, fine, unknown, warning, wrong } from './finding.ts';

export interface RemoteOptions {
  readonly url: string;
  readonly fetch: Fetch;
  /** Certificates in PEM form that alone are trusted; null for those of the system. */
  readonly ca: string | null;
  /** The genesis that is trusted; null when there is none. */
  readonly genesis: GenesisBlock | null;
  /** Of this program. */
  readonly version: string;
  now(): number;
}

type Calls = ReturnType<typeof publicCalls>;

const ATTEMPT_MS = 10_000;

export async function checkRemote(options: RemoteOptions): Promise<Finding[]> {
  const { url, fetch } = options;
  const tls = await checkTls(options);
  const server: ServerOptions = { url, fetch, timeoutMs: ATTEMPT_MS, retries: 0 };
  const calls = publicCalls(server);
  try {
    await calls.get(Whole, '/healthz');
  } catch (cause) {
    if (tls.some(({ outcome }) => outcome === 'wrong')) return tls;
    const cure = 'Start it, or name another address; see its log and that of the proxy before it';
    return [...tls, wrong('reachable', messageOf(cause), cure)];
  }
  const ready = await checkReady(calls);
  const network = await checkNetwork(calls, options);
  const first = [...tls, fine('reachable', `${url} answers`), ready, ...network.findings];
  // It answers nothing that rests on the state.
  if (ready.found === WAITS) return first;
  return [
    ...first,
    ...(network.genesis === null ? [] : await checkDocuments(calls, network.genesis, options)),
    ...(await checkAddress(calls, server)),
    await checkClock(calls, options),
    await checkPosture(calls),
    await checkVersion(options),
  ];
}

/** A finding in place of an answer that did not come, or was not what it should be. */
async function asked(
  check: Finding['check'],
  cure: string,
  ask: () => Promise<Finding>,
): Promise<Finding> {
  try {
    return await ask();
  } catch (cause) {
    return wrong(check, messageOf(cause), cure);
  }
}

const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/;
const TLS_CURE =
  'Put a certificate in place that is valid for this name, or trust its issuer by --ca';

async function checkTls({ url, ca, now }: RemoteOptions): Promise<Finding[]> {
  const { protocol, hostname, port } = new URL(url);
  if (protocol === 'http:') {
    if (LOOPBACK.test(hostname)) return [];
    const found = `What is sent to ${url} can be read and altered on its way`;
    return [warning('exposure', found, 'Serve TLS, or put a proxy with TLS before it')];
  }
  const seen = await certificateOf(hostname, Number(port || 443), ca);
  if (typeof seen === 'string') return [wrong('tls', seen, TLS_CURE)];
  const end = Date.parse(seen.certificate.valid_to);
  const lifetime = ending('tls', 'The TLS certificate that is served', end, now(), TLS_CURE);
  if (seen.problem === null || lifetime.outcome === 'wrong') return [lifetime];
  return [wrong('tls', `The TLS certificate is not accepted (${seen.problem})`, TLS_CURE)];
}

interface SeenCertificate {
  readonly certificate: PeerCertificate;
  /** Why it is not accepted; null when it is. */
  readonly problem: string | null;
}

/** The certificate that is served, or why none was seen. It is not relied on, so it need not be valid. */
function certificateOf(
  hostname: string,
  port: number,
  ca: string | null,
): Promise<SeenCertificate | string> {
  const host = bareHost(hostname);
  const isName = !/^[0-9.]+$|:/.test(host);
  return new Promise((resolve) => {
    const socket: TLSSocket = connect(
      {
        host,
        port,
        rejectUnauthorized: false,
        timeout: ATTEMPT_MS,
        ...(isName && { servername: host }),
        ...(ca !== null && { ca }),
      },
      () => {
        const problem = socket.authorized ? null : String(socket.authorizationError);
        resolve({ certificate: socket.getPeerCertificate(), problem });
        socket.destroy();
      },
    );
    socket.on('error', (cause) => resolve(messageOf(cause)));
    socket.on('timeout', () => {
      resolve('Nobody answers there');
      socket.destroy();
    });
  });
}

const WAITS = 'It waits for its turn, while another instance serves';
const READY_CURE = 'See the log of the authority, and docs/monitoring.md on health';

function checkReady(calls: Calls): Promise<Finding> {
  return asked('ready', READY_CURE, async () => {
    try {
      await calls.get(Whole, '/readyz');
      return fine('ready', 'It says that it is ready');
    } catch (cause) {
      if (!(cause instanceof AuthorityError)) throw cause;
      const { wireCode, details } = cause;
      if (details.role === 'follower') return fine('ready', WAITS);
      const reason = typeof details.reason === 'string' ? `: ${details.reason}` : '';
      return wrong('ready', `It is not ready (${wireCode})${reason}`, READY_CURE);
    }
  });
}

interface NetworkReport {
  /** As it is served, when it is what it should be. */
  readonly genesis: GenesisBlock | null;
  readonly findings: readonly Finding[];
}

const NETWORK_CURE = 'Check the address, and what answers there';

async function checkNetwork(calls: Calls, { genesis, now }: RemoteOptions): Promise<NetworkReport> {
  let served: GenesisBlock;
  try {
    served = await calls.get(GenesisBlock, '/genesis');
  } catch (cause) {
    return { genesis: null, findings: [wrong('network', messageOf(cause), NETWORK_CURE)] };
  }
  const refused = (found: string, cure = NETWORK_CURE): NetworkReport => ({
    genesis: null,
    findings: [wrong('network', found, cure)],
  });
  const { network_name: name, network_authority: authority, root_public_key: root } = served;
  if (genesis !== null && genesis.root_public_key !== root) {
    return refused(
      `It serves the network ${name} with the root key ${root}, not that of the folder`,
    );
  }
  if (createVerifier().genesis(served as JsonObject) !== 'valid') {
    return refused('It serves a genesis that the root key has not signed');
  }
  if (genesis !== null && genesis.network_authority.public_key !== authority.public_key) {
    return refused('It serves a genesis that names another authority key than that of the folder');
  }
  if (genesis === null) {
    const end = instantOf(authority.valid_to);
    const cure = 'Run mesh-na genesis renew where the root key is';
    const delegation = ending('delegation', 'The delegation of the root key', end, now(), cure);
    const found = `The network ${name}; compare its root key: ${root}`;
    return { genesis: served, findings: [fine('network', found), delegation] };
  }
  if (genesis.network_authority.valid_to !== authority.valid_to) {
    const found = 'It serves another genesis than that of the folder: one was renewed since';
    const finding = warning('network', found, 'Start it again, with the newest genesis');
    return { genesis: served, findings: [finding] };
  }
  return { genesis: served, findings: [fine('network', `The network ${name} of the folder`)] };
}

const LIST_CURE = 'See the log of the authority; a proxy or cache before it may serve an old copy';

async function checkDocuments(
  calls: Calls,
  genesis: GenesisBlock,
  { now }: RemoteOptions,
): Promise<Finding[]> {
  const verifier = createVerifier({ now });
  const key = genesis.network_authority.public_key;
  return [
    await asked('crl', LIST_CURE, async () => {
      const list = await calls.get(Whole, '/crl');
      const reason = verifier.revocationList(list, key);
      if (reason !== 'valid')
        return wrong('crl', `The revocation list is ${SPELLED[reason]}`, LIST_CURE);
      const { sequence, next_update } = list as unknown as CertificateRevocationList;
      return fine('crl', `Revocation list ${sequence} is signed, and good until ${next_update}`);
    }),
    await asked('feed', LIST_CURE, async () => {
      const feed = await calls.get(Whole, '/sovereign-revocation-feed');
      const reason = verifier.feed(feed, genesis.network_name, [key]);
      return reason === 'valid'
        ? fine('feed', `Revocation feed ${String(feed.sequence)} is signed`)
        : wrong('feed', `The revocation feed is ${SPELLED[reason]}`, LIST_CURE);
    }),
  ];
}

const SPELLED = {
  malformed: 'not of the expected form',
  invalid_signature: 'not signed by the authority',
  stale: 'past its next update',
  wrong_issuer: 'that of another sovereign',
} as const;

const FORGED_HOST = 'forged.invalid';

/** Under which address the authority takes itself to be reached, and whether a client can decide that. */
async function checkAddress(calls: Calls, server: ServerOptions): Promise<Finding[]> {
  const cure = 'Set MESH_PUBLIC_URL to the address that clients use';
  const own = await asked('public_url', cure, async () => {
    const { endpoint } = await calls.get(SovereignDocument, '/sovereign.json');
    const wanted = server.url.replace(/\/+$/, '');
    return endpoint === wanted
      ? fine('public_url', `It knows itself as ${endpoint}`)
      : warning('public_url', `It knows itself as ${endpoint}, and was asked at ${wanted}`, cure);
  });
  const hops = 'Set MESH_PROXY_HOPS to the number of proxies, and let clients reach only these';
  const forged = await asked('forwarded', hops, async () => {
    const headers = { 'x-forwarded-host': FORGED_HOST };
    const { endpoint } = await calls.get(SovereignDocument, '/sovereign.json', {}, { headers });
    return new URL(endpoint).hostname === FORGED_HOST
      ? warning('forwarded', 'It believes what a client says about proxies', hops)
      : fine('forwarded', 'It does not believe what a client says about proxies');
  });
  return [own, forged];
}

/** From there on requests are refused whose time is that of this machine. */
const WRONG_MS = 300_000;
const ODD_MS = 60_000;

/** Which times the authority considers past shows its own time, within a minute. */
function checkClock(calls: Calls, { now }: RemoteOptions): Promise<Finding> {
  const cure = 'Keep the clocks of both machines right, such as by NTP';
  return asked('clock_skew', cure, async () => {
    for (const [limit, judge] of [[WRONG_MS, wrong] as const, [ODD_MS, warning] as const]) {
      const found = `by more than ${limit / 1000} s`;
      if (await isPast(calls, now() + limit)) {
        return judge('clock_skew', `Its clock is ahead of this machine ${found}`, cure);
      }
      if (!(await isPast(calls, now() - limit))) {
        return judge('clock_skew', `Its clock is behind this machine ${found}`, cure);
      }
    }
    return fine('clock_skew', `Its clock agrees with this machine within ${ODD_MS / 1000} s`);
  });
}

/** A question about the future is refused. */
async function isPast(calls: Calls, instant: number): Promise<boolean> {
  const question = { from: 'doctor', to: 'doctor', as_of: formatInstant(instant) };
  try {
    await calls.get(Whole, '/connectome/trust-path', question);
    return true;
  } catch (cause) {
    if (cause instanceof AuthorityError && cause.wireCode === 'invalid_as_of') return false;
    throw cause;
  }
}

/** An earlier version does not say what is unknown. */
const { unknown: notKnown, ...judgedProperties } = Posture.properties;
const Judged = Type.Object({
  posture: Type.Object({ ...judgedProperties, unknown: Type.Optional(notKnown) }),
});

function checkPosture(calls: Calls): Promise<Finding> {
  const cure = 'See docs/monitoring.md on posture';
  return asked('posture', cure, async () => {
    const { posture } = await calls.get(Judged, '/dashboard.json');
    const { findings, unknown: open = [] } = posture;
    const found = [...findings, ...open]
      .map(({ sentence }) => sentence.replace(/\.$/, ''))
      .join('; ');
    if (posture.status === 'ok') {
      return open.length === 0
        ? fine('posture', 'It says that all is well')
        : unknown('posture', found, 'Ask again then');
    }
    return posture.status === 'action'
      ? wrong('posture', found, cure)
      : warning('posture', found, cure);
  });
}

const BUILD = /^mesh_na_build_info\{version="([^"]*)"\} 1$/m;

/** Metrics may be closed to strangers, and should be. */
async function checkVersion({ url, fetch, version }: RemoteOptions): Promise<Finding> {
  const served = await servedVersion(url, fetch);
  if (served === null) {
    const cure = 'Ask from where /metrics may be read';
    return unknown('version', 'The version of the server cannot be seen from here', cure);
  }
  return served === version
    ? fine('version', `Server and this program are of version ${version}`)
    : warning('version', `The server is of version ${served}, this program of ${version}`, UPDATE);
}

const UPDATE = 'Use the same version on both sides';

const MOST_METRICS_BYTES = 16 * 1024 * 1024;

async function servedVersion(url: string, fetch: Fetch): Promise<string | null> {
  try {
    const signal = AbortSignal.timeout(ATTEMPT_MS);
    const answer = await fetch(`${url.replace(/\/+$/, '')}/metrics`, {
      method: 'GET',
      headers: {},
      redirect: 'error',
      signal,
    });
    return BUILD.exec(await textOf(answer, signal, MOST_METRICS_BYTES))?.[1] ?? null;
  } catch {
    return null;
  }
}
