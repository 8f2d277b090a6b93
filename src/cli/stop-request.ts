/** How a person or a supervisor stops a long-running command. */

export interface StopRequest {
  /** The first stop signal. */
  readonly requested: Promise<NodeJS.Signals>;
  /** Aborted by the second stop signal. */
  readonly hurry: AbortSignal;
}

export function awaitStop(): StopRequest {
  const hurry = new AbortController();
  const requested = new Promise<NodeJS.Signals>((resolve) => {
    let isRequested = false;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (isRequested) hurry.abort();
        isRequested = true;
        resolve(signal);
      });
    }
  });
  // Without a listener, Node.js would open its inspector, which gives anyone on this machine control.
  process.on('SIGUSR1', () => undefined);
  return { requested, hurry: hurry.signal };
}

/** Aborted by SIGINT or SIGTERM, for a command that goes on until somebody stops it. */
export function stopSignal(): AbortSignal {
  const stopped = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopped.abort());
  return stopped.signal;
}
