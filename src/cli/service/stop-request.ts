/** How a person or a supervisor stops a long-running command. */
import { isatty } from 'node:tty';

/**
 * Without `reload`, SIGHUP stops the command. With it, SIGHUP does so only if it means that the terminal of the command
 * has gone, and otherwise reloads: a service manager or a container has no terminal, and `nohup` takes it away.
 */
export function awaitStop(reload: (() => void) | null = null) {
  const terminals = STANDARD_STREAMS.filter(isatty);
  const isTerminalGone = () => terminals.length > 0 && !terminals.some(isatty);
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
  // Without a listener, SIGUSR1 would open the inspector, which gives anyone on this machine control, and SIGUSR2 would
  // end the process everywhere but in a container.
  for (const signal of ['SIGUSR1', 'SIGUSR2']) process.on(signal, () => undefined);
  return {
    /** The first stop signal. */
    requested,
    /** Aborted by the second stop signal. */
    hurry: hurry.signal,
  };
}

const STANDARD_STREAMS = [0, 1, 2];

/** Aborted by SIGINT or SIGTERM, for a command that goes on until somebody stops it. */
export function stopSignal(): AbortSignal {
  const stopped = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopped.abort());
  return stopped.signal;
}
