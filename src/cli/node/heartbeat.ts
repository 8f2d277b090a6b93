/** `node heartbeat`: sends heartbeats once, or at an interval until a signal. */

import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRuntime } from '../../base/runtime.ts';
import { namesOthers } from '../../client/agent-authority.ts';
import { AuthorityError, isUnreachable } from '../../client/authority-error.ts';
import { createHeartbeatSessions } from '../../client/heartbeat-sessions.ts';
import { isUnproven } from '../../client/kept-request.ts';
import { createNodeClient } from '../../client/node-client.ts';
import type { Acknowledgement } from '../../protocol/answers/enrollment.ts';
import { serverOf } from '../connection/server.ts';
import { type OptionsIn, option } from '../kernel/command.ts';
import { onLocalFiles, outcomeOf } from '../kernel/errors.ts';
import { wholeNumber } from '../kernel/options.ts';
import { type OutputOptions, printNotice, printResult } from '../kernel/output.ts';
import { stopSignal } from '../service/stop-request.ts';
import {
  LONGEST_INTERVAL_SECONDS,
  type NodeOptions,
  readCertificate,
  readNodeKey,
  recordPath,
} from './folder.ts';
import { pinnedAudience, trustInFolder, updateNetwork } from './trust.ts';

export const HEALTH = option('--status <text>', 'what to report', {
  fallback: 'healthy' as string,
});

export const BEAT = [
  HEALTH,
  option('--every <seconds>', 'repeat at about this interval (±10 %) until stopped by a signal', {
    parse: wholeNumber(LONGEST_INTERVAL_SECONDS),
  }),
] as const;

type HeartbeatOptions = NodeOptions & OptionsIn<typeof BEAT>;

export async function runHeartbeat(options: HeartbeatOptions): Promise<void> {
  const { every } = options;
  const beat = heartbeats(options);
  if (every !== undefined) {
    return beatUntilStopped(options, { everySeconds: every, beat, noun: 'heartbeats' });
  }
  const { ack, server_time } = await beat();
  printResult(options, { ack, server_time }, [`Heartbeat acknowledged at ${server_time}.`]);
}

/** Sends one heartbeat per call, and follows the keys of the authority when they have changed [authority-keys-7-1]. */
function heartbeats(options: HeartbeatOptions): () => Promise<Acknowledgement> {
  const { nodeDir, status, proof, every } = options;
  const key = onLocalFiles(() => readNodeKey(nodeDir));
  const server = serverOf(options);
  const trust = trustInFolder(nodeDir);
  const isPinned = () => existsSync(recordPath(nodeDir, 'genesis'));
  // A single heartbeat does not need one.
  const sessions = every === undefined ? null : createHeartbeatSessions();
  let waitUntil = -Infinity;

  // Read for every heartbeat, because a renewal or a succession may replace it during the loop.
  function send(): Promise<Acknowledgement> {
    const { cert_id } = onLocalFiles(() => readCertificate(nodeDir));
    const digest = trust()?.digest() ?? null;
    const inSession = sessions !== null && isPinned() && { sessions };
    const bound = (proof === 'header' || inSession) && { audience: pinnedAudience(nodeDir) };
    return createNodeClient({ ...server, proof, key, ...bound, ...inSession }).heartbeat({
      cert_id,
      status,
      bulletin: true,
      ...(digest !== null && { authority_keys_digest: digest }),
    });
  }

  /** A failure is reported, but the node is alive all the same. */
  async function follow(): Promise<void> {
    if (systemRuntime.elapsed() < waitUntil) return;
    try {
      await updateNetwork(options);
    } catch (error) {
      waitUntil = systemRuntime.elapsed() + PAUSE_MS;
      printNotice(outcomeOf(error).message);
    }
  }

  /** The proof may name a key that was replaced. */
  async function again(error: unknown): Promise<Acknowledgement> {
    if (proof !== 'header' || !isUnproven(error)) throw error;
    const before = pinnedAudience(nodeDir);
    await follow();
    if (pinnedAudience(nodeDir) === before) throw error;
    return send();
  }

  return async () => {
    const answer = await send().catch(again);
    const { bulletin } = answer;
    if (bulletin === undefined || !isPinned()) return answer;
    if (namesOthers(trust(), bulletin.authority_keys_digest ?? null)) await follow();
    return answer;
  };
}

/** How long to wait after the keys could not be followed. */
const PAUSE_MS = 600_000;

interface Repetition {
  beat(): Promise<unknown>;
  readonly everySeconds: number;
  /** Names what the loop sends, in the plural. */
  readonly noun: string;
}

/**
 * Sends heartbeats until SIGINT or SIGTERM, then reports their number. Throws a refusal that retries cannot resolve.
 */
export async function beatUntilStopped(
  options: OutputOptions,
  { beat, everySeconds, noun }: Repetition,
): Promise<void> {
  const signal = stopSignal();
  let acknowledged = 0;
  let missed = 0;
  while (!signal.aborted) {
    let atLeastMs = 0;
    try {
      await beat();
      acknowledged += 1;
    } catch (error) {
      if (!mayPass(error)) throw error;
      missed += 1;
      atLeastMs = Math.min(error.retryAfter ?? 0, LONGEST_INTERVAL_SECONDS) * 1000;
      printNotice(outcomeOf(error).message);
    }
    // Spread out, because a whole fleet may have started at the same time.
    const spread = 0.9 + 0.2 * (systemRuntime.randomBytes(1).readUInt8() / 255);
    const ms = Math.max(everySeconds * 1000 * spread, atLeastMs);
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }
  const text = `Stopped: ${acknowledged} ${noun} acknowledged, ${missed} missed.`;
  printResult(options, { acknowledged, missed }, [text]);
}

/**
 * Whether the error may be transient: 401 and an expired or superseded descriptor go away when a wrong clock is
 * corrected; other refusals are final.
 */
function mayPass(error: unknown): error is AuthorityError {
  if (!(error instanceof AuthorityError)) return false;
  if (isUnreachable(error) || error.retryable || error.status === 401) return true;
  return error.code === 'descriptor_expired' || error.code === 'descriptor_superseded';
}
