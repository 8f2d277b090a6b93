/** Both ends of a link between two instances, in one process. */

import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import { createLogger, type Logger } from '../../src/base/log/logger.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import { createRateLimits, type RateLimitSettings } from '../../src/edge/limits/rate-limit.ts';
import {
  createInstanceStatusMemory,
  instanceStatusIn,
} from '../../src/protocol/contract/instance-status.ts';
import { RATE_BUCKETS } from '../../src/protocol/route-description.ts';
import { createLinkClient, type LinkClientOptions } from '../../src/server/link/client.ts';
import {
  type LinkHost,
  type LinkHostOptions,
  openLinkHost,
  type WriterAccess,
} from '../../src/server/link/host.ts';
import { linkSecret } from '../../src/server/link/keys.ts';
import { tlsWires } from '../../src/server/link/tls-wires.ts';
import { patientQueue } from './request-queue.ts';

const { elapsed, now } = systemRuntime;

export const LINK_SIGNER = signerFromSeed(Buffer.alloc(32, 7));
export const LINK_SECRET = linkSecret(LINK_SIGNER, 'a');
const { publicKey } = LINK_SIGNER;
export const WIRES = tlsWires({
  keys: {
    isAccepted: (given) => given === publicKey,
    accepted: (given) => (given === publicKey ? LINK_SECRET : null),
    offered: () => [{ publicKey, secret: LINK_SECRET }],
  },
  warn: () => undefined,
});

export const NO_LIMITS = Object.fromEntries(
  RATE_BUCKETS.map((bucket) => [bucket, null]),
) as RateLimitSettings;

/** A logger that keeps what was written to it. */
export function keptLog(): { readonly logger: Logger; text(): string } {
  const lines: string[] = [];
  const logger = createLogger({
    level: 'INFO',
    format: 'text',
    destination: { write: (text) => lines.push(text) },
    now,
  });
  return { logger, text: () => lines.join('') };
}

/** The writer's end of the link. */
export function openTestHost(
  options: Pick<LinkHostOptions, 'publisher' | 'logger'> & Partial<LinkHostOptions>,
): Promise<LinkHost> {
  return openLinkHost({
    address: { host: '127.0.0.1', port: 0 },
    wires: WIRES,
    program: '1',
    elapsed,
    ...options,
  });
}

/** Makes the host answer with `call`, as if the database had just confirmed it as the writer. */
export function startServing(host: LinkHost, epoch: number, call: WriterAccess['call']): void {
  const limits = createRateLimits(NO_LIMITS);
  const queue = patientQueue(elapsed);
  host.startServing({ epoch, call, queue, limits, heldSince: () => null });
}

/** A follower's end of the link. */
export function createTestClient(
  options: Pick<LinkClientOptions, 'publisher' | 'logger'> & Partial<LinkClientOptions>,
) {
  return createLinkClient({
    edgesCaughtUp: () => Promise.resolve(),
    answered: () => undefined,
    nextKey: () => null,
    wires: WIRES,
    program: '1',
    name: 'pid 1',
    instance: 'first',
    instanceStatus: instanceStatusIn(createInstanceStatusMemory()),
    elapsed,
    linked: () => undefined,
    ...options,
  });
}
