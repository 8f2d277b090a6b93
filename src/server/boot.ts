/** The composition root: an instance is prepared, serves, and stops, and each step returns what the next one needs. */

import { setTimeout as delay } from 'node:timers/promises';
import { problemText } from '../base/error-message.ts';
import { type BootOptions, createBase } from './base.ts';
import type { Config } from './config/load.ts';
import type { Front } from './front.ts';
import type { StopPatience, StopSteps } from './lifecycle/lifecycle.ts';
import { type Prepared, prepare } from './prepare.ts';
import { type Serving, serve } from './serve.ts';
import { createTerms } from './standby.ts';

export type RunningAuthority = Awaited<ReturnType<typeof startAuthority>>;

export async function startAuthority(config: Config, options: BootOptions) {
  const prepared = await prepare(createBase(config, options));
  const { logger, lifecycle, background, fatal, signer, instances } = prepared;
  let edges: Front | null = null;
  let opened: (front: Front) => void = () => undefined;
  const front = new Promise<Front>((resolve) => {
    opened = (found) => {
      edges = found;
      resolve(found);
    };
  });
  try {
    const terms = createTerms(prepared, front);
    const first = await terms.first();
    const serving = await serve(prepared, terms, opened);
    const taking = first === null ? terms.standByAndTake() : null;
    await first?.begin(background);
    // A start may last longer than the lease, until its next renewal.
    await instances.opening.opened?.lease?.heldSince(options.runtime.elapsed());
    taking?.catch((cause) => {
      if (lifecycle.state === 'serving') fatal('taking over', cause);
    });
    for (const warning of config.warnings) logger.write('WARNING', 'config', warning);
    const steps = stopSteps(prepared, serving, taking);
    return {
      port: serving.edges.port,
      logger,
      /** The key that signs, which the state may name instead of the configuration. */
      key: { publicKey: signer.publicKey, keyId: signer.keyId },
      /** Runs a periodic job now instead of at its next interval; rejects if it fails, or if it does not run here. */
      runJob: background.runNow,
      /** Resolves when everything that the edges have sent so far, log lines in particular, has arrived. */
      settle: serving.edges.settle,
      /** Ends the process because of an uncaught failure. */
      fatal,
      /** Refuses new requests, finishes those in flight, flushes, and releases the store. */
      stop: (patience: StopPatience = AT_ONCE): Promise<void> => lifecycle.stop(steps, patience),
    };
  } catch (cause) {
    // What cannot end, such as a request to a database that does not answer, must not hide the cause.
    const failed = (problem: unknown) =>
      logger.write('ERROR', 'server', `The end of a failed start: ${problemText(problem)}`);
    const end = endFailedStart(prepared, edges).catch(failed);
    await Promise.race([end, delay(ABANDON_MS, undefined, { ref: false })]);
    throw cause;
  }
}

/** `taking` is the time as a standby; null if it was active from the start. */
function stopSteps(
  { instances, place, background, fatal, pulse, watchdog, signer }: Prepared,
  { edges, history }: Serving,
  taking: Promise<void> | null,
): StopSteps {
  return {
    announce: edges.announce,
    drain: edges.drain,
    cut: edges.cut,
    async flush() {
      instances.opening.giveUp();
      await taking?.catch(() => undefined);
      place.role.endReaders();
      await background.stop();
      await history.finish();
      await place.role.close();
    },
    overrun() {
      // Otherwise the lease would be renewed for as long as the process lives.
      if (instances.instanceStatus !== null) fatal('stop', new Error(OVERRUN));
    },
    async close() {
      await instances.close();
      await edges.close();
      pulse.end();
      await Promise.all([watchdog.end(), signer.close()]);
    },
  };
}

/** Ends what a start has begun. `edges` is null if it has not come to serving. */
async function endFailedStart(prepared: Prepared, edges: Front | null): Promise<void> {
  const { place, instances, pulse, background, threads, watchdog, signer } = prepared;
  place.role.seal();
  place.role.endReaders();
  instances.opening.giveUp();
  await instances.close();
  await edges?.abandon();
  pulse.end();
  await background.stop();
  await place.role.abandon();
  await Promise.all([...threads.map((thread) => thread.end()), watchdog.end(), signer.close()]);
}

/** How long a start that failed may take to end what it has begun. */
const ABANDON_MS = 10_000;

const OVERRUN =
  'Data that is only in memory could not be stored in time; this process exits so that another instance can take over';

const AT_ONCE: StopPatience = { announceMs: 0, hurry: new AbortController().signal };
