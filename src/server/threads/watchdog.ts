/** The watchdog, as seen by the process it watches. */
import inspector from 'node:inspector';
import type { LogSettings } from '../../base/log/logger.ts';
import type { Beats } from './beats.ts';
import { createPeer } from './rpc.ts';
import { endOf, startWorker } from './worker-thread.ts';

export interface WatchdogSettings {
  readonly beats: Beats;
  readonly log: LogSettings;
}

export type WatchdogProcedures = {
  /** Returns once the watchdog is watching. */
  ready(): void;
};

export interface Watchdog {
  /** Resolves once the watchdog is watching. */
  readonly ready: Promise<void>;
  end(): Promise<void>;
}

export type StartWatchdog = (
  settings: WatchdogSettings,
  onFailure: (cause: unknown) => void,
) => Watchdog;

/** For a process that may stop at a breakpoint or shares its threads with other work. */
export const NO_WATCHDOG: Watchdog = { ready: Promise.resolve(), end: () => Promise.resolve() };

export const startWatchdog: StartWatchdog = (settings, onFailure) => {
  if (inspector.url() !== undefined) return NO_WATCHDOG;
  const worker = startWorker('watchdog', settings);
  const ended = endOf(worker, onFailure);
  return {
    ready: createPeer<WatchdogProcedures>(worker, {}).call('ready'),
    end() {
      const end = ended.expected();
      void worker.terminate();
      return end;
    },
  };
};
