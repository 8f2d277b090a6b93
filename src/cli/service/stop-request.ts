/** How a person or a supervisor stops a long-running command. */
import { isatty } from 'node:tty';

/**
 * Without `reload`, SIGHUP stops the command. With it, SIGHUP does so only if it means that the terminal of the command
 * has gone, and otherwise reloads: a service manager or a container has no terminal, and `nohup` takes it away.
 */
export function awaitStop(reload: (() => void) | null = null) {
  const isTerminalGone = watchTerminal();
  const hurry = new AbortController();
  const requested = new Promise<NodeJS.Signals>((resolve) => {
    let isRequested = false;
    function stop(signal: NodeJS.Signals): void {
      if (isRequested) hurry.abort();
      isRequested = true;
      resolve(signal);
    }
    process.on('SIGTERM', stop).on('SIGINT', stop);
    process.on('SIGHUP', (signal) => {
      if (reload === null || isTerminalGone()) stop(signal);
      else reload();
    });
  });
  ignoreUserSignals();
  return {
    /** The first stop signal. */
    requested,
    /** Aborted by the second stop signal. */
    hurry: hurry.signal,
  };
}

const STANDARD_STREAMS = [0, 1, 2];

/** Returns whether the command had a terminal, which has gone. */
function watchTerminal(): () => boolean {
  const terminals = STANDARD_STREAMS.filter(isatty);
  return () => terminals.length > 0 && !terminals.some(isatty);
}

/**
 * Without a listener, SIGUSR1 would open the inspector, which gives anyone on this machine control, and SIGUSR2 would end
 * the process everywhere but in a container.
 */
function ignoreUserSignals(): void {
  for (const signal of ['SIGUSR1', 'SIGUSR2']) process.on(signal, () => undefined);
}

/** Aborted by SIGINT or SIGTERM, or when the terminal has gone, for a command that goes on until somebody stops it. */
export function stopSignal(): AbortSignal {
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  const isTerminalGone = watchTerminal();
  process.once('SIGTERM', stop).once('SIGINT', stop);
  process.on('SIGHUP', () => {
    if (isTerminalGone()) stop();
  });
  ignoreUserSignals();
  return stopped.signal;
}
