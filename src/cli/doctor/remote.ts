/** Checks of an authority from the outside, as any client sees it. */

import { isIP } from 'node:net';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import Type, { type Static } from 'typebox';
import { bareHost } from '../../base/bare-host.ts';
import { messageOf } from '../../base/error-message.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { AuthorityError } from '../../client/authority-error.ts';
import { CHAIN_TOOLS } from '../../client/followed-keys.ts';
import { CLOCK_TOLERANCE_MS, createVerifier } from '../../client/offline.ts';
import { publicCalls } from '../../client/operations.ts';
import type { Fetch, ServerOptions } from '../../client/options.ts';
import { FINDING_CURES } from '../../pages/dashboard/posture-section.ts';
import { SovereignDocument } from '../../protocol/answers/documents.ts';
import { AuthorityKeys, followChain } from '../../protocol/records/authority-chain.ts';
import { GenesisBlock } from '../../protocol/records/genesis.ts';
import { instantOf, Whole } from '../../protocol/records/record.ts';
import type { CertificateRevocationList } from '../../protocol/records/revocation-list.ts';
import { DashboardPartner, Posture } from '../../protocol/rows/dashboard.ts';
import { metricsText } from '../connection/server.ts';
import { ending, type Finding, fine, unknown, warning, wrong } from './finding.ts';

export interface RemoteOptions {
  readonly url: string;
  readonly fetch: Fetch;
  /** The only trusted certificates, in PEM form; null for those of the system. */
  readonly ca: string | null;
  /** The trusted genesis; null when there is none. */
  readonly genesis: GenesisBlock | null;
  /** The version of this program. */
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
    const cure =
      'Start it or correct the address; check its log and the log of the proxy in front of it';
    return [...tls, wrong('reachable', messageOf(cause), cure)];
  }
  const ready = await checkReady(calls);
  const network = await checkNetwork(calls, options);
  const first = [...tls, fine('reachable', `${url} answers`), ready, ...network.findings];
  // A waiting instance answers no requests that need the state.
  if (ready.found === WAITS || network.isUnavailable) return first;
  return [
    ...first,
    ...(network.genesis === null ? [] : await checkDocuments(calls, network.genesis, options)),
    ...(await checkAddress(calls, server)),
    await checkClock(calls, options),
    ...(await checkPartners(calls)),
    await checkPosture(calls),
    await checkVersion(options),
  ];
}

/** Returns a finding instead when no usable answer arrives. */
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
const TLS_CURE = 'Install a certificate that is valid for this name, or trust its issuer with --ca';

async function checkTls({ url, ca, now }: RemoteOptions): Promise<Finding[]> {
  const { protocol, hostname, port } = new URL(url);
  if (protocol === 'http:') {
    if (LOOPBACK.test(hostname)) return [];
    const found = `Traffic to ${url} can be read and altered in transit`;
    return [warning('exposure', found, 'Enable TLS, or put a TLS proxy in front of it')];
  }
  const seen = await certificateOf(hostname, Number(port || 443), ca);
  if (typeof seen === 'string') return [wrong('tls', seen, TLS_CURE)];
  const end = Date.parse(seen.certificate.valid_to);
  const lifetime = ending('tls', 'The served TLS certificate', end, now(), TLS_CURE);
  if (seen.problem === null || lifetime.outcome === 'wrong') return [lifetime];
  return [wrong('tls', `The TLS certificate is not accepted (${seen.problem})`, TLS_CURE)];
}

interface SeenCertificate {
  readonly certificate: PeerCertificate;
  /** Why the certificate is not accepted; null when it is. */
  readonly problem: string | null;
}

/** The served certificate, or why there is none. It is only inspected, so it need not be valid. */
function certificateOf(
  hostname: string,
  port: number,
  ca: string | null,
): Promise<SeenCertificate | string> {
  const host = bareHost(hostname);
  return new Promise((resolve) => {
    const socket: TLSSocket = connect(
      {
        host,
        port,
        rejectUnauthorized: false,
        timeout: ATTEMPT_MS,
        ...(isIP(host) === 0 && { servername: host }),
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

const WAITS = 'It is a standby, which waits to become active';
const READY_CURE =
  'Check the log of the authority, and see "The service is not ready" in docs/runbooks.md';

function checkReady(calls: Calls): Promise<Finding> {
  return asked('ready', READY_CURE, async () => {
    try {
      await calls.get(Whole, '/readyz');
      return fine('ready', 'It is ready');
    } catch (cause) {
      if (!(cause instanceof AuthorityError)) throw cause;
      const { wireCode, details } = cause;
      // A linked one is ready as long as it reaches the active instance.
      if (details.role === 'standby' && details.ha_mode !== 'linked') return fine('ready', WAITS);
      // A state that was rolled back has a reason, and anything else a problem.
      const why = details.problem ?? details.reason;
      const said = typeof why === 'string' ? `: ${why}` : '';
      return wrong('ready', `It is not ready (${wireCode})${said}`, READY_CURE);
    }
  });
}

interface NetworkReport {
  /** The served genesis; null unless it is the expected one. */
  readonly genesis: GenesisBlock | null;
  readonly findings: readonly Finding[];
  /** Whether it answers nothing that needs the state. */
  readonly isUnavailable?: boolean;
}

/** Whether it is ready says more about such an instance. */
const STATELESS: ReadonlySet<string> = new Set(['authority_unavailable', 'restore_pending']);

const NETWORK_CURE = 'Check the address, and which server answers there';

async function checkNetwork(calls: Calls, { genesis, now }: RemoteOptions): Promise<NetworkReport> {
  let served: GenesisBlock;
  try {
    served = await calls.get(GenesisBlock, '/genesis');
  } catch (cause) {
    if (cause instanceof AuthorityError && STATELESS.has(cause.wireCode)) {
      return { genesis: null, findings: [], isUnavailable: true };
    }
    return { genesis: null, findings: [wrong('network', messageOf(cause), NETWORK_CURE)] };
  }
  const refused = (found: string, cure = NETWORK_CURE): NetworkReport => ({
    genesis: null,
    findings: [wrong('network', found, cure)],
  });
  const { network_name: name, network_authority: authority, root_public_key: root } = served;
  if (genesis !== null && genesis.root_public_key !== root) {
    return refused(
      `It serves the network ${name} with the root key ${root}, not the network of the data folder`,
    );
  }
  if (createVerifier().genesis(served as JsonObject) !== 'valid') {
    return refused('It serves a genesis that the root key did not sign');
  }
  if (genesis !== null && genesis.network_authority.public_key !== authority.public_key) {
    const successor = await successorOf(genesis, calls, now()).catch(() => null);
    if (successor !== authority.public_key) {
      return refused('It serves a genesis with a different authority key than the data folder');
    }
    const found = `The network ${name}, whose authority has replaced the key in the data folder`;
    return { genesis: served, findings: [fine('network', found)] };
  }
  if (genesis === null) {
    const end = instantOf(authority.valid_to);
    const cure = 'Run mesh-na genesis renew on the machine with the root key';
    const delegation = ending('delegation', 'The delegation of the root key', end, now(), cure);
    const found = `The network ${name}; compare its root key: ${root}`;
    return { genesis: served, findings: [fine('network', found), delegation] };
  }
  if (genesis.network_authority.valid_to !== authority.valid_to) {
    const found = 'It serves a different genesis than the data folder: one of them was renewed';
    const finding = warning('network', found, 'Restart it with the newest genesis');
    return { genesis: served, findings: [finding] };
  }
  return {
    genesis: served,
    findings: [fine('network', `The network ${name}, as in the data folder`)],
  };
}

/** The current key of the authority that this genesis founded, by statements that its root key vouches for. */
async function successorOf(genesis: GenesisBlock, calls: Calls, now: number) {
  const { network_name: networkName, root_public_key: rootKey, network_authority } = genesis;
  const document = await calls.get(AuthorityKeys, '/authority-keys');
  const verdict = followChain({ networkName, trusted: { rootKey } }, document, now, CHAIN_TOOLS);
  if (verdict.refusal !== null) return null;
  const isKnown = verdict.keys.some(({ public_key: key }) => key === network_authority.public_key);
  return isKnown ? verdict.currentKey : null;
}

const LIST_CURE =
  'Check the log of the authority; a proxy or cache in front of it may serve an old copy';

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
      return fine('crl', `Revocation list ${sequence} is signed and valid until ${next_update}`);
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
  malformed: 'malformed',
  invalid_signature: 'not signed by the authority',
  not_yet_valid: 'dated ahead of the clock of this machine',
  stale: 'out of date',
  wrong_issuer: 'from another sovereign',
} as const;

const FORGED_HOST = 'forged.invalid';

/** Checks which address the authority assumes for itself, and whether a client can influence it. */
async function checkAddress(calls: Calls, server: ServerOptions): Promise<Finding[]> {
  const cure = 'Set MESH_PUBLIC_URL to the address that clients use';
  const own = await asked('public_url', cure, async () => {
    const { endpoint } = await calls.get(SovereignDocument, '/sovereign.json');
    const wanted = server.url.replace(/\/+$/, '');
    return endpoint === wanted
      ? fine('public_url', `Its public URL is ${endpoint}`)
      : warning(
          'public_url',
          `Its public URL is ${endpoint}, but it was reached at ${wanted}`,
          cure,
        );
  });
  const hops =
    'Set MESH_PROXY_HOPS to the number of proxies, and let clients reach only the proxies';
  const forged = await asked('forwarded', hops, async () => {
    const headers = { 'x-forwarded-host': FORGED_HOST };
    const { endpoint } = await calls.get(SovereignDocument, '/sovereign.json', {}, { headers });
    return new URL(endpoint).hostname === FORGED_HOST
      ? warning('forwarded', 'It trusts forwarding headers from clients', hops)
      : fine('forwarded', 'It ignores forwarding headers from clients');
  });
  return [own, forged];
}

/** Less than what authorities tolerate. */
const ODD_MS = 60_000;

/** Finds the authority's time, to within a minute, by asking which times it considers past. */
function checkClock(calls: Calls, { now }: RemoteOptions): Promise<Finding> {
  const cure = 'Synchronize the clocks of both machines, for example with NTP';
  return asked('clock_skew', cure, async () => {
    for (const [limit, judge] of [
      [CLOCK_TOLERANCE_MS, wrong] as const,
      [ODD_MS, warning] as const,
    ]) {
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

/** The authority refuses questions about the future. */
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

const Judged = Type.Object({ posture: Posture });
const WithPartners = Type.Object({ partners: Type.Optional(Type.Array(DashboardPartner)) });

/** Nothing without partners. */
async function checkPartners(calls: Calls): Promise<Finding[]> {
  const { partners = [] } = await calls
    .get(WithPartners, '/dashboard.json')
    .catch((): Static<typeof WithPartners> => ({}));
  const failing = partners.filter(({ problem }) => problem !== null);
  const cure = 'Ask its operators, or set its address with mesh-na treaty endpoint';
  if (partners.length === 0) return [];
  if (failing.length === 0) return [fine('partners', 'Every sovereign with an address is fetched')];
  return failing.map(({ subject_sovereign_id: subject, endpoint, problem, failing_since: since }) =>
    warning('partners', `"${subject}" at ${endpoint}: ${problem} (since ${since})`, cure),
  );
}

function checkPosture(calls: Calls): Promise<Finding> {
  return asked('posture', 'Check the log of the authority', async () => {
    const { posture } = await calls.get(Judged, '/dashboard.json');
    const { findings, unknown: open } = posture;
    const commands = findings.flatMap(({ rule }) => FINDING_CURES[rule]?.[1] ?? []);
    const cure =
      commands.length === 0 ? 'Run mesh-na status' : `Run mesh-na ${commands.join(', mesh-na ')}`;
    const dated = findings.map(({ sentence, since }) =>
      since === undefined ? sentence : `${withoutPeriod(sentence)} (since ${since})`,
    );
    const found = [...dated, ...open.map(({ sentence }) => sentence)].map(withoutPeriod).join('; ');
    if (posture.status === 'ok') {
      return open.length === 0
        ? fine('posture', 'It reports that all is well')
        : unknown('posture', found, 'Check again later');
    }
    return posture.status === 'action'
      ? wrong('posture', found, cure)
      : warning('posture', found, cure);
  });
}

function withoutPeriod(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

const BUILD = /^mesh_na_build_info\{version="([^"]*)"\} 1$/m;

/** Metrics may, and should, be inaccessible from the outside. */
async function checkVersion({ url, fetch, version }: RemoteOptions): Promise<Finding> {
  const served = BUILD.exec((await metricsText(url, fetch)) ?? '')?.[1] ?? null;
  if (served === null) {
    const cure = 'Run this where /metrics is accessible';
    return unknown('version', 'The version of the server cannot be seen from here', cure);
  }
  return served === version
    ? fine('version', `The server and this program both have version ${version}`)
    : warning(
        'version',
        `The server has version ${served}, but this program has ${version}`,
        UPDATE,
      );
}

const UPDATE = 'Use the same version on both sides';
