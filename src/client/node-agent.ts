/**
 * Keeps one node enrolled: joins when there is no certificate, sends heartbeats as advised, renews within the renewal
 * window, and keeps the network's documents up to date and verified. When the authority is unavailable or sends
 * unusable answers, the agent keeps what it has, reports why, and retries with growing pauses. While it cannot write to
 * storage, it continues with what it has, uses no invite, and renews only at the end of the window.
 */
import type { VerifySignature } from '../base/crypto/primitives.ts';
import { jsonText } from '../base/json/write.ts';
import type { Acknowledgement } from '../protocol/answers/enrollment.ts';
import type { AuthoritySuccession } from '../protocol/records/authority-succession.ts';
import { readBulletin } from '../protocol/records/bulletin.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { type JoinCertificate, readJoinCertificate } from '../protocol/records/join-certificate.ts';
import { instantOf } from '../protocol/records/record.ts';
import {
  type Lifetime,
  renewalAfter,
  renewalOf,
  windowEnd,
} from '../protocol/records/renewal-window.ts';
import { isSignedByAny } from '../protocol/records/signed-record.ts';
import { type NetworkRecord, openAgentNetwork } from './agent-network.ts';
import { type AgentStorage, createRecordKeeper } from './agent-storage.ts';
import { AuthorityError, isUnreachable } from './authority-error.ts';
import { createHeartbeatSessions } from './heartbeat-sessions.ts';
import { createKeptRequests, isLost, isUnproven, type SameStamp } from './kept-request.ts';
import { verifyText } from './keys.ts';
import { CERTIFICATE_PROBLEMS, certificateReason } from './network-trust.ts';
import { createNodeClient, type NodeClient, type NodeClientOptions } from './node-client.ts';
import type { CallOptions } from './options.ts';
import { createPublicClient } from './public-client.ts';
import { parsed } from './received.ts';
import { isUndone } from './retry.ts';
import { pause } from './waiting.ts';

export interface NodeAgentOptions extends Omit<NodeClientOptions, 'sessions'> {
  readonly storage: AgentStorage;
  /** The root key of the network: everything accepted must be anchored in it. */
  readonly rootKey: string;
  /** Returns the invite token, called when there is no usable certificate; null ends the agent if there is none. */
  readonly token?: () => Promise<string | null> | string | null;
  readonly validityHours?: number;
  /** What the machine calls itself, reported when it joins. */
  readonly hostname?: string;
  /** Defaults to portable code; a native implementation is faster. */
  readonly verify?: VerifySignature;
  /** The status that heartbeats report; `healthy` by default. */
  readonly status?: () => string;
  readonly onEvent?: (event: AgentEvent) => void;
  /**
   * Milliseconds over which nodes spread their renewals after the authority's key was replaced without an overlap;
   * 600,000 by default.
   */
  readonly successionSpreadMs?: number;
  /** From 0 to 1. */
  readonly random?: () => number;
}

export type ChangedRecord = NetworkRecord | 'certificate';

export type AgentEvent =
  | { readonly type: 'changed'; readonly record: ChangedRecord }
  /** The authority's key was replaced, or will be at `activates_at`. */
  | {
      readonly type: 'succession';
      readonly statement: AuthoritySuccession;
      readonly isInForce: boolean;
    }
  /** What was stored cannot be read, and is fetched again. */
  | { readonly type: 'damaged'; readonly record: NetworkRecord }
  /** Something the authority sent was rejected. */
  | { readonly type: 'refused'; readonly what: string; readonly problem: string }
  | {
      readonly type: 'failed';
      readonly problem: string;
      /** Null if the problem says what to do. */
      readonly error: Error | null;
      readonly retryInMs: number;
    }
  /** The first attempt that succeeded after others failed. */
  | { readonly type: 'recovered' }
  /** Changes cannot be stored and are kept in memory; null once everything is stored again. */
  | { readonly type: 'storage'; readonly problem: string | null }
  | { readonly type: 'ended'; readonly end: AgentEnd };

/** `stopped`: by the signal. Any other code is an error that retrying cannot fix. */
export type AgentEnd = { readonly code: string; readonly message: string };

/** The state of an agent as it stores it for local programs. Timestamps are ISO 8601. */
export type AgentState = {
  readonly updated_at: string;
  readonly ended: AgentEnd | null;
  readonly network_name: string | null;
  readonly authority_key: string | null;
  readonly cert_id: string | null;
  readonly expires_at: string | null;
  readonly renew_after: string | null;
  readonly last_heartbeat: string | null;
  readonly next_turn: string | null;
  readonly crl_sequence: number | null;
  readonly policy_id: string | null;
  readonly notices: readonly string[];
  /** Why the last attempt failed; null when it succeeded. */
  readonly problem: string | null;
};

const DEFAULT_INTERVAL_S = 120;
const LONGEST_INTERVAL_S = 86_400;
const FIRST_RETRY_MS = 5000;
const LONGEST_RETRY_MS = 600_000;
/** While the answer to a request for a certificate may be lost, retries are frequent, for about a quarter of an hour. */
const PROMPT_RETRY_MS = 20_000;
const PROMPT_RETRIES = 45;
const SUCCESSION_SPREAD_MS = 600_000;
/** A certificate is used for at least this share of its lifetime, no matter how early the authority advises renewal. */
const LEAST_USE = 0.05;

export type NodeAgent = Awaited<ReturnType<typeof createNodeAgent>>;

/** Rejects when the stored records are damaged, or belong to another network or node. */
export async function createNodeAgent(options: NodeAgentOptions) {
  const { storage, key, rootKey, now = Date.now, random = Math.random, wait = pause } = options;
  const { verify = verifyText, successionSpreadMs: spreadMs = SUCCESSION_SPREAD_MS } = options;
  const emit = options.onEvent ?? (() => undefined);
  const keeper = createRecordKeeper({
    storage,
    stored(record) {
      if (record !== 'agent' && record !== 'request') emit({ type: 'changed', record });
    },
    changed: (found) => emit({ type: 'storage', problem: found }),
  });
  const network = await openAgentNetwork({
    client: createPublicClient({ ...options, retries: 0 }),
    storage: { read: storage.read, write: keeper.keep },
    rootKey,
    verify,
    now,
    onRefused: (what, problem) => refuse(what, problem),
    onDamaged: (record) => emit({ type: 'damaged', record }),
    onSuccession: (statement, isInForce) => emit({ type: 'succession', statement, isInForce }),
  });
  const { authority } = network;
  const sendKept = createKeptRequests(options, {
    read: () => storage.read('request'),
    write: (text) => keeper.keep('request', text),
  });
  const sessions = createHeartbeatSessions({ verify });
  let certificate = await heldCertificate(storage, authority.genesis(), key.publicKey);
  let renewAt = certificate === null ? null : renewalOf(certificate.cert_id, lifeOf(certificate));
  /** By when to renew this certificate so that this authority key has signed it. */
  let plan = { certId: '', key: '', at: Infinity };
  let lastHeartbeat: string | null = null;
  /** The time until the next heartbeat; infinite until this turn has sent one. */
  let nextBeatMs = Infinity;
  let nextTurn: string | null = null;
  let notices: readonly string[] = [];
  let problem: string | null = null;
  let failures = 0;
  /** The last renewal failed then, and is tried again after this time. */
  let putOff: { count: number; at: number; ms: number; problem: string } | null = null;
  /** Whether the last request for a certificate may have been carried out, and its answer lost. */
  let isAwaited = false;
  let ended: AgentEnd | null = null;

  function refuse(what: string, found: string): void {
    problem = `The ${what} from the authority is rejected: ${found}`;
    emit({ type: 'refused', what, problem: found });
  }

  /** A client of the authority that the verified genesis names. Failures are retried in a later turn. */
  function clientOf(stamp?: SameStamp): NodeClient {
    const audience = authority.currentKey();
    if (audience === null) throw new Error(problem ?? 'The network is not known yet');
    return createNodeClient({ ...options, ...stamp, audience, sessions, retries: 0 });
  }

  /** The authority issues each certificate only once, so a turn whose answer was lost is followed by the same request. */
  async function enroll(
    what: string,
    ask: (client: NodeClient, call: CallOptions) => Promise<JoinCertificate>,
  ): Promise<void> {
    try {
      await sendKept(what, async (stamp, call) => keep(await ask(clientOf(stamp), call)));
      isAwaited = false;
    } catch (error) {
      isAwaited = isLost(error) && !isUndone(error);
      throw error;
    }
  }

  async function keep(offered: JoinCertificate): Promise<void> {
    const received = readJoinCertificate(offered);
    if (received === null) return refuse('certificate', 'it is malformed');
    let reason = reasonOf(received);
    if (reason === 'invalid_signature') {
      // The authority's key may have been replaced a moment ago.
      await authority.update();
      reason = reasonOf(received);
    }
    const found = CERTIFICATE_PROBLEMS[reason];
    if (found !== null) return refuse('certificate', found);
    use(received);
    await keeper.keep('certificate', `${jsonText(received)}\n`);
  }

  function use(received: JoinCertificate): void {
    certificate = received;
    renewAt = renewalOf(received.cert_id, lifeOf(received));
    putOff = null;
    notices = [];
  }

  function reasonOf(received: JoinCertificate) {
    const [genesis, signers] = [authority.genesis(), authority.trust()];
    if (genesis === null || signers === null) return 'malformed';
    const expected = { genesis, authority: signers, publicKey: key.publicKey };
    return certificateReason(received, expected, now(), verify);
  }

  /** When to renew, at the latest for the sake of the authority's current key. */
  function renewalDue(): number | null {
    const current = authority.currentKey();
    if (certificate === null || renewAt === null || current === null) return renewAt;
    const { cert_id: certId } = certificate;
    if (plan.key !== current || plan.certId !== certId) {
      const isSigned = isSignedByAny(certificate, [current], verify);
      const change = authority.trust()?.lastChange() ?? null;
      const held = { certId, due: renewAt };
      const at = isSigned ? Infinity : renewalAfter(change, held, { spreadMs, now, random });
      plan = { certId, key: current, at };
    }
    return Math.min(renewAt, plan.at);
  }

  /** Whether a certificate would survive this process: the authority issues it only once. */
  async function canStore(): Promise<boolean> {
    await keeper.keep('agent', `${jsonText(state())}\n`);
    return keeper.problem() === null;
  }

  function validity() {
    const { validityHours } = options;
    return validityHours === undefined ? {} : { validity_hours: validityHours };
  }

  async function join(): Promise<AgentEnd | null> {
    const token = (await options.token?.()) ?? null;
    if (token === null) return certificate === null ? NO_CERTIFICATE : renewAtLast(certificate);
    if (!(await canStore())) throw new Error(`The invite was not used: ${keeper.problem()}`);
    try {
      const { hostname } = options;
      const request = {
        invite_token: token,
        ...validity(),
        ...(hostname !== undefined && { hostname }),
      };
      await enroll(`join ${jsonText(request)}`, (client, call) => client.join(request, call));
      return null;
    } catch (error) {
      if (isFinal(error)) return { code: error.wireCode, message: error.message };
      throw error;
    }
  }

  function hasExpired({ expires_at }: JoinCertificate): boolean {
    return now() >= instantOf(expires_at);
  }

  /** Without an invite, the authority says whether the certificate has expired: this clock may be wrong. */
  async function renewAtLast(held: JoinCertificate): Promise<AgentEnd | null> {
    try {
      await renew(held);
      return null;
    } catch (error) {
      if (isFinal(error)) return EXPIRED;
      throw error;
    }
  }

  function isPutOff(): boolean {
    return putOff !== null && Math.abs(now() - putOff.at) < putOff.ms;
  }

  /** While nothing can be stored, renewal waits until the end of the window, and then happens anyway. */
  async function mayRenew(held: JoinCertificate): Promise<boolean> {
    const due = renewalDue();
    if (due === null || now() < due || isPutOff()) return false;
    return (await canStore()) || now() >= windowEnd(lifeOf(held));
  }

  /** Returns why only the renewal fails, such as while nothing can be signed: heartbeats go on. */
  async function renewIfDue(held: JoinCertificate): Promise<Error | null> {
    if (!(await mayRenew(held))) return null;
    try {
      await renew(held);
      return certificate === held ? new Error(problem ?? 'The certificate is rejected') : null;
    } catch (error) {
      if (isOfRenewal(error)) return error;
      throw error;
    }
  }

  async function renew({ cert_id }: JoinCertificate): Promise<void> {
    const request = { cert_id, ...validity() };
    await enroll(`renew ${jsonText(request)}`, (client, call) => client.renew(request, call));
  }

  /** Another program may have renewed the certificate in the same place, such as `mesh-na node renew`. */
  async function takeStored(): Promise<boolean> {
    const found = await heldCertificate(storage, authority.genesis(), key.publicKey).catch(
      () => null,
    );
    if (found === null || certificate === null) return false;
    if (instantOf(found.issued_at) <= instantOf(certificate.issued_at)) return false;
    use(found);
    return true;
  }

  async function beat(client: NodeClient, { cert_id }: JoinCertificate): Promise<Acknowledgement> {
    const status = options.status?.() ?? 'healthy';
    const digest = authority.trust()?.digest() ?? null;
    const answer = await client.heartbeat({
      cert_id,
      status,
      bulletin: true,
      ...(digest !== null && { authority_keys_digest: digest }),
    });
    const seconds = answer.next_heartbeat_seconds ?? DEFAULT_INTERVAL_S * (0.9 + 0.2 * random());
    nextBeatMs = 1000 * (Math.min(Math.max(seconds, 1), LONGEST_INTERVAL_S) + random());
    lastHeartbeat = answer.server_time;
    notices = answer.notices ?? [];
    return answer;
  }

  /** Follows what the answer to a heartbeat says. A list that cannot be fetched keeps no node from heartbeats. */
  async function follow(
    { bulletin: offered, renew_after }: Acknowledgement,
    life: Lifetime,
  ): Promise<void> {
    const bulletin = readBulletin(offered);
    if (bulletin !== null) await network.follow(bulletin);
    await network.complete();
    const advised = renew_after === undefined ? Number.NaN : Date.parse(renew_after);
    // The authority does not know who was away: by its advice, all that return would renew at the same time.
    const isPlanned = renewalDue() !== null && plan.at !== Infinity;
    if (Number.isFinite(advised) && !isPlanned) renewAt = boundedRenewal(advised, life);
  }

  /** Error answers are not signed and must not end a node, so the signed list has to confirm a revocation. */
  async function isRevoked(error: unknown): Promise<boolean> {
    if (certificate === null) return false;
    const isClaimed = error instanceof AuthorityError && error.code === 'certificate_revoked';
    if (!isClaimed) return network.isRevoked(certificate.cert_id);
    const isConfirmed = await network.confirmsRevocation(certificate.cert_id).catch(() => false);
    if (!isConfirmed) refuse('revocation', 'its signed list does not have the certificate');
    return isConfirmed;
  }

  async function work(): Promise<number | AgentEnd> {
    await keeper.retry();
    if (certificate === null || authority.genesis() === null) await network.complete();
    const client = clientOf();
    let refusal: Error | null = null;
    if (certificate === null || (hasExpired(certificate) && !(await takeStored()))) {
      const end = await join();
      if (end !== null) return end;
    } else refusal = await renewIfDue(certificate);
    if (certificate === null) throw new Error(problem ?? 'There is no certificate');
    const answer = await beat(client, certificate);
    if (refusal !== null) {
      const count = (putOff?.count ?? 0) + 1;
      putOff = { count, at: now(), ...reportFailure(refusal, count) };
    }
    await follow(answer, lifeOf(certificate));
    if (await isRevoked(null)) return REVOKED;
    const due = renewalDue();
    const waits = due !== null && now() >= due && (keeper.problem() !== null || isPutOff());
    const untilRenewal = due === null || waits ? Infinity : Math.max(1000, due - now());
    return Math.min(nextBeatMs, untilRenewal);
  }

  async function failed(error: unknown): Promise<number | AgentEnd> {
    if (!(error instanceof Error)) throw error;
    if (await isRevoked(error)) return REVOKED;
    const isRefused = error instanceof AuthorityError && error.status === 403;
    if (isRefused && (await takeStored())) return 1000 * random();
    failures += 1;
    const before = authority.currentKey();
    if (isUnproven(error)) await authority.update().catch(() => undefined);
    if (authority.currentKey() !== before) return 1000 * random();
    return reportFailure(error, failures, nextBeatMs).ms;
  }

  /** `count` is how often it has failed in a row, which makes the pause longer, up to `most` milliseconds. */
  function reportFailure(
    error: Error,
    count: number,
    most = Infinity,
  ): { ms: number; problem: string } {
    const asked = error instanceof AuthorityError ? (error.retryAfter ?? 0) * 1000 : 0;
    const isPrompt = isAwaited && count <= PROMPT_RETRIES;
    const longest = isPrompt ? PROMPT_RETRY_MS : LONGEST_RETRY_MS;
    const growing = Math.min(longest, FIRST_RETRY_MS * 2 ** (count - 1));
    const ms = Math.min(most, LONGEST_INTERVAL_S * 1000, asked + growing * (0.5 + random()));
    const cure = error instanceof AuthorityError ? CURES.get(error.wireCode) : undefined;
    const found = cure === undefined ? problemOf(error) : `${problemOf(error)}: ${cure}`;
    problem ??= found;
    emit({ type: 'failed', problem: found, error: cure ? null : error, retryInMs: ms });
    return { ms, problem: found };
  }

  async function turn(): Promise<number | AgentEnd> {
    problem = null;
    nextBeatMs = Infinity;
    let next: number | AgentEnd;
    try {
      next = await work();
      if (failures > 0) emit({ type: 'recovered' });
      failures = 0;
    } catch (error) {
      next = await failed(error);
    }
    if (typeof next !== 'number') {
      ended = next;
      emit({ type: 'ended', end: next });
    }
    nextTurn = typeof next === 'number' ? new Date(now() + next).toISOString() : null;
    await keeper.keep('agent', `${jsonText(state())}\n`);
    return next;
  }

  function state(): AgentState {
    return {
      updated_at: new Date(now()).toISOString(),
      ended,
      network_name: authority.genesis()?.network_name ?? null,
      authority_key: authority.currentKey(),
      cert_id: certificate?.cert_id ?? null,
      expires_at: certificate?.expires_at ?? null,
      renew_after: renewAt === null ? null : new Date(renewAt).toISOString(),
      last_heartbeat: lastHeartbeat,
      next_turn: nextTurn,
      crl_sequence: network.crl()?.sequence ?? null,
      policy_id: network.policy()?.policy_id ?? null,
      notices,
      problem: problem ?? putOff?.problem ?? keeper.problem(),
    };
  }

  return {
    state,
    /** Does what is due; returns the milliseconds until the next turn, or why the agent ended. */
    turn,
    /** Takes turns until the signal is aborted or the agent ends. */
    async run(signal: AbortSignal): Promise<AgentEnd> {
      while (!signal.aborted) {
        const next = await turn();
        if (typeof next !== 'number') return next;
        await wait(next, signal).catch(() => undefined);
      }
      return { code: 'stopped', message: 'The agent was stopped' };
    },
  };
}

const NO_CERTIFICATE: AgentEnd = {
  code: 'no_certificate',
  message: 'There is no certificate and no invite token',
};

const EXPIRED: AgentEnd = {
  code: 'certificate_expired',
  message: 'The certificate has expired, and there is no invite token',
};

const REVOKED: AgentEnd = {
  code: 'certificate_revoked',
  message: 'The certificate is on the revocation list of the network',
};

async function heldCertificate(
  storage: AgentStorage,
  genesis: GenesisBlock | null,
  publicKey: string,
): Promise<JoinCertificate | null> {
  const text = await storage.read('certificate');
  if (text === null) return null;
  const certificate = readJoinCertificate(parsed(text));
  if (certificate === null) throw new Error('The stored certificate is damaged');
  if (certificate.node_public_key !== publicKey) {
    throw new Error('The stored certificate is for another key');
  }
  if (genesis !== null && certificate.network_name !== genesis.network_name) {
    throw new Error('The stored certificate names another network');
  }
  return certificate;
}

function lifeOf({
  issued_at,
  expires_at,
}: Pick<JoinCertificate, 'issued_at' | 'expires_at'>): Lifetime {
  return { issuedAt: instantOf(issued_at), expiresAt: instantOf(expires_at) };
}

/** The advice is not signed: it may bring a renewal forward within limits, but never delay it. */
function boundedRenewal(advised: number, life: Lifetime): number {
  const earliest = life.issuedAt + LEAST_USE * (life.expiresAt - life.issuedAt);
  return Math.min(Math.max(advised, earliest), windowEnd(life));
}

/** A join error that retrying cannot fix. */
function isFinal(error: unknown): error is AuthorityError {
  return (
    error instanceof AuthorityError &&
    !isUnreachable(error) &&
    [400, 403, 409, 422].includes(error.status)
  );
}

/** Whether the refusal says nothing about heartbeats. */
function isOfRenewal(error: unknown): error is AuthorityError {
  return (
    error instanceof AuthorityError &&
    error.code !== 'unreadable_answer' &&
    ![0, 401, 403].includes(error.status)
  );
}

function problemOf(error: Error): string {
  return error instanceof AuthorityError ? `${error.message} (${error.wireCode})` : error.message;
}

/** What to do about a refusal that the agent cannot mend by another request. */
const CURES: ReadonlyMap<string, string> = new Map([
  [
    // An agent renews in time, so another one with its key has done so.
    'certificate_superseded',
    'a copy of what this node stores is in use elsewhere; stop it, and join again here or there with a new key and a new invite',
  ],
  [
    // It is newer than the backup.
    'certificate_not_found',
    'the authority may have been restored from a backup; join again with a new invite',
  ],
]);
