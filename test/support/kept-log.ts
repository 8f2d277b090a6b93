import { createLogger, type Logger } from '../../src/base/log/logger.ts';
import { systemRuntime } from '../../src/base/runtime.ts';

/** A logger that keeps what was written to it. */
export function keptLog(): { readonly logger: Logger; text(): string } {
  const lines: string[] = [];
  const logger = createLogger({
    level: 'INFO',
    format: 'text',
    destination: { write: (text) => lines.push(text) },
    now: systemRuntime.now,
  });
  return { logger, text: () => lines.join('') };
}
