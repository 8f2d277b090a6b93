/** What every part of an instance uses: its clocks, log, metrics, published documents, and the states of the process. */
import { createClock } from '../base/clock.ts';
import { jsonText } from '../base/json/write.ts';
import { createLogger } from '../base/log/logger.ts';
import { timeOf, withClocks } from '../base/runtime.ts';
import { documentText, publishedDocument } from '../protocol/contract/documents.ts';
import { createDocumentPublisher } from '../protocol/contract/publications.ts';
import type { BootOptions } from './boot.ts';
import type { Config } from './config/load.ts';
import { createBackground } from './lifecycle/background.ts';
import { createFatal } from './lifecycle/fatal.ts';
import { createLifecycle } from './lifecycle/lifecycle.ts';
import { createAuthorityMetrics } from './metrics/authority.ts';
import { type Role, STARTING } from './role.ts';

export type Base = ReturnType<typeof createBase>;

export function createBase(config: Config, options: BootOptions) {
  const { logLevel: level, logFormat: format } = config;
  const place: { role: Role } = { role: STARTING };
  const silencers: (() => void | Promise<void>)[] = [() => place.role.seal()];
  const metrics = createAuthorityMetrics(options.version, options.droppedLogLines);
  const time = timeOf(options.manualTime);
  const clock = createClock(time, {
    stepped(byMs) {
      metrics.clockStepped(byMs);
      logger.write('WARNING', 'clock', `The system clock was set ${inWords(byMs)}`);
    },
    followed(byMs) {
      place.role.clockSet(byMs);
      logger.write('WARNING', 'clock', `The service follows a clock that was set ${inWords(byMs)}`);
    },
  });
  const runtime = withClocks(options.runtime, time, clock.timeAt);
  const logger = createLogger({
    level,
    format,
    destination: options.destination,
    now: runtime.now,
  });
  const lifecycle = createLifecycle();
  const publisher = createDocumentPublisher();
  publisher.publish('genesis', publishedDocument(jsonText(config.genesis)));
  return {
    config,
    options,
    /** What this instance is now. */
    place,
    metrics,
    clock,
    runtime,
    logger,
    publisher,
    genesis: newestGenesis(config, publisher),
    lifecycle,
    background: createBackground(logger, (job) => metrics.jobSucceeded(job, runtime.now())),
    /** Each stops a component that could still answer. */
    silencers,
    fatal: createFatal({
      logger,
      folder: config.dataDir,
      async silence() {
        lifecycle.enter('failed');
        await Promise.all(silencers.map((silence) => silence()));
      },
      end: options.onFatal,
    }),
  };
}

function newestGenesis(config: Config, publisher: ReturnType<typeof createDocumentPublisher>) {
  let genesis = config.genesis;
  publisher.follow(({ name, document }) => {
    if (name === 'genesis') genesis = JSON.parse(documentText(document));
  });
  return () => genesis;
}

function inWords(byMs: number): string {
  return `${byMs > 0 ? 'forward' : 'back'} by ${(Math.abs(byMs) / 1000).toFixed(1)} s`;
}
