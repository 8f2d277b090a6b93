/** Notifies systemd of the state of the service, with its own program, where it waits for that. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from '../../base/log/logger.ts';

const run = promisify(execFile);

/** More than a program that sends one message needs. */
const TIMEOUT_MS = 10_000;

const MESSAGES = { ready: 'READY=1', stopping: 'STOPPING=1' };

export type ServiceState = keyof typeof MESSAGES;

/** Does nothing where `NOTIFY_SOCKET` is absent: no manager waits. */
export async function notifyManager(
  state: ServiceState,
  environment: NodeJS.ProcessEnv,
  logger: Logger,
): Promise<void> {
  if (!environment.NOTIFY_SOCKET) return;
  try {
    await run('systemd-notify', [MESSAGES[state]], { timeout: TIMEOUT_MS });
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    logger.write(
      'WARNING',
      'server',
      `systemd could not be notified that this is ${state}: ${problem}`,
    );
  }
}
