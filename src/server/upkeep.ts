/** The periodic work of every instance, active or not: clock, disk, TLS pair, live pages and history. */
import { hasRoom } from '../authority/host-status.ts';
import type { Signer } from '../base/crypto/primitives.ts';
import { messageOf } from '../base/error-message.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import { readTlsPair, type TlsPair } from '../base/tls/pair.ts';
import { type SessionSecret, sessionBoxKeys } from '../edge/auth/session.ts';
import { UNAVAILABLE } from '../protocol/contract/calls.ts';
import type { DocumentPublisher } from '../protocol/contract/documents.ts';
import { SESSION_LABEL, sessionBoxText } from '../protocol/heartbeat-session.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { isSignerUnavailable } from '../protocol/refusals.ts';
import { derivedSecret, keysIn, networkDigest } from './forward/keys.ts';
import type { Front } from './front.ts';
import { createHistoryRecorder } from './history-recorder.ts';
import { freeSpace } from './lifecycle/system-limits.ts';
import type { Prepared } from './prepare.ts';
import type { EdgeHost } from './threads/edge-threads.ts';

const CLOCK_CHECK_MS = 1000;
/** Short enough that little can be written between two checks, relative to the reserve that `minFree` keeps. */
const DISK_CHECK_MS = 1000;
/** How soon a new certificate is used; each check reads two small files. */
const TLS_RELOAD_MS = 10_000;
/** How soon heartbeat sessions are possible again after a signer was unavailable when another key became current. */
const SESSION_SECRET_MS = 10_000;
/** How late a minute may be recorded. */
const HISTORY_CHECK_MS = 1000;
/** Live pages are updated at most this often. */
const LIVE_REFRESH_MS = 500;

const NO_ROOM =
  'Less than MESH_MIN_FREE_MB is free on the disk of the state: invites, joins and new agents are refused';

/** Returns the recorder of the history. */
export function beginUpkeep(prepared: Prepared, host: EdgeHost, edges: Front) {
  const { config, runtime, background, signer, publisher, metrics, hostStatus, place } = prepared;
  const { clock, logger } = prepared;
  if (config.edge.heartbeatSession !== null) {
    const { genesis } = config;
    const use = edges.useSessionSecret;
    const derive = followSessionSecret({ signer, genesis, publisher, use });
    background.start('session_secret', SESSION_SECRET_MS, derive);
  }
  background.start('live_refresh', LIVE_REFRESH_MS, () => refreshLivePages(host));
  background.start('clock_check', CLOCK_CHECK_MS, () => {
    clock.check();
    metrics.clockSkewed(clock.skew());
  });
  background.start('disk_check', DISK_CHECK_MS, () => checkDisk(prepared));
  const { tls } = config;
  if (tls !== null) background.start('tls_reload', TLS_RELOAD_MS, tlsReload(prepared, edges, tls));
  const history = createHistoryRecorder({
    source: runtime.randomBytes(6).readUIntBE(0, 6),
    now: runtime.now,
    reports: async () => [...(await edges.reports()), await metrics.report()],
    counts: async () => (await place.role.call?.('readCounts', null)) ?? UNAVAILABLE,
    diskFree: () => hostStatus.diskFree,
    record: (part) => host.call('recordHistory', part),
    logger,
  });
  background.start('history', HISTORY_CHECK_MS, history.check);
  return history;
}

async function checkDisk({ config, hostStatus, logger }: Prepared): Promise<void> {
  const had = hasRoom({ hostStatus: () => hostStatus });
  hostStatus.diskFree = await freeSpace(config.dataDir);
  const has = hasRoom({ hostStatus: () => hostStatus });
  if (had && !has) logger.write('ERROR', 'store', NO_ROOM);
  if (!had && has)
    logger.write('INFO', 'store', 'There is enough disk space again: nodes may be enrolled');
}

/**
 * Keeps the served TLS pair up to date with its files: a new pair is used once it has been checked, and the last good
 * one until then.
 */
function tlsReload(
  { hostStatus, logger, metrics, runtime }: Prepared,
  edges: Front,
  first: TlsPair,
): () => Promise<void> {
  let current = first;
  /** Files are read every few seconds: each problem is logged once. */
  let loggedProblem: string | null = null;
  metrics.tlsNotAfter(first.notAfter);

  return async () => {
    try {
      const pair = readTlsPair(current, runtime.now());
      loggedProblem = null;
      if (pair.digest === current.digest) return;
      await edges.useTls(pair);
      current = pair;
      hostStatus.tlsNotAfter = pair.notAfter;
      metrics.tlsNotAfter(pair.notAfter);
      const until = new Date(pair.notAfter).toISOString();
      const text = `New connections use the new certificate, valid until ${until}`;
      logger.write('INFO', 'tls', text);
    } catch (cause) {
      const problem = messageOf(cause);
      if (problem === loggedProblem) return;
      loggedProblem = problem;
      const until = new Date(current.notAfter).toISOString();
      const kept = `The previous pair stays in use; its certificate is valid until ${until}`;
      logger.write('ERROR', 'tls', `${problem}. ${kept}`);
    }
  };
}

/** Rebuilds outdated documents of live pages while there are viewers. */
async function refreshLivePages({ shared, call }: EdgeHost): Promise<void> {
  if (Atomics.load(shared.viewers, 0) === 0) return;
  await Promise.all([call('refreshDashboard', null), call('refreshGraph', null)]);
}

interface SessionSecretsOptions {
  readonly signer: Pick<AuthoritySigner, 'held'>;
  readonly genesis: GenesisBlock;
  readonly publisher: Pick<DocumentPublisher, 'follow'>;
  /** Called with the secret of the current key; null if it cannot be derived now. */
  use(secret: SessionSecret | null): void;
}

/**
 * Gives the edges the secret of heartbeat sessions, which the current key of the authority determines [core-3-4].
 * Returns a function that tries again if the secret of the current key could not be derived.
 */
export function followSessionSecret({
  signer,
  genesis,
  publisher,
  use,
}: SessionSecretsOptions): () => void {
  const network = networkDigest(genesis);
  let current: string | null = null;
  let derivedFor: string | null = null;

  function secretOfCurrent(): SessionSecret | null {
    const key = signer.held().find(({ publicKey }) => publicKey === current);
    return key === undefined ? null : sessionSecret(key, network);
  }

  function derive(): void {
    if (current === derivedFor) return;
    const secret = secretOfCurrent();
    derivedFor = secret === null ? null : current;
    use(secret);
  }

  publisher.follow(({ name, document }) => {
    if (name !== 'authority_keys') return;
    current = keysIn(document).find(({ state }) => state === 'current')?.public_key ?? null;
    derive();
  });
  return derive;
}

/** Null while the signer is unavailable. */
function sessionSecret(key: Signer, network: string): SessionSecret | null {
  try {
    const secret = derivedSecret(key, network, SESSION_LABEL);
    const { publicKey } = sessionBoxKeys(secret);
    return { secret, signature: key.sign(sessionBoxText(publicKey.toString('base64'))) };
  } catch (cause) {
    if (isSignerUnavailable(cause)) return null;
    throw cause;
  }
}
