/** Notifies systemd of the state of the service through `systemd-notify`, if systemd expects notifications. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from '../../base/log/logger.ts';

const run = promisify(execFile);

/** Ample for a program that sends one message. */
const TIMEOUT_MS = 10_000;

const MESSAGES = { ready: 'READY=1', stopping: 'STOPPING=1' };

export type ServiceState = keyof typeof MESSAGES;

/** Does nothing without `NOTIFY_SOCKET`: no service manager expects a notification. */
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
