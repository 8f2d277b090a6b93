/** The connections of one thread to the active instance: over TLS, or to the socket of this thread itself. */
import { createRequire } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import { connectWithKey } from './shared-key-tls.ts';
import type { ForwardTarget } from './target.ts';

const require = createRequire(import.meta.url);

/** Loaded on first use: an instance that forwards nothing starts and runs without it. */
export const loadUndici = (): typeof import('undici') => require('undici');

/** An answer that was read completely. */
export interface WholeAnswer {
  readonly status: number;
  readonly body: string;
}

export interface Upstream {
  /** False while it does not answer: nothing can be sent. */
  isUp(): boolean;
  /** Sends a request. */
  dispatch(
    options: Dispatcher.DispatchOptions,
    lane: Lane,
    handlers: Dispatcher.DispatchHandlers,
  ): void;
  /** For WebSockets, which last. */
  readonly lasting: Dispatcher;
  /** Null if there is no answer in time. */
  read(path: string, milliseconds: number): Promise<WholeAnswer | null>;
  /**
   * Takes nothing more. What it has taken may still be answered for a moment, because an instance that stops says of
   * each request whether it was begun. Then all connections are ended, and what is in flight is lost.
   */
  close(): void;
}

/** Requests of a lane wait only for connections of that lane, so that no crowd of strangers holds up nodes or operators. */
export type Lane = keyof typeof CONNECTIONS;

/** Further requests wait for one; of streams, which may not end, none waits. */
const CONNECTIONS = { node: 128, operator: 32, public: 256, lasting: null } as const;
/** The other side keeps few connections of one address that have not proved the key yet. */
const HANDSHAKES = 4;
/** Shorter than the ten seconds after which uWebSockets.js ends an idle connection. */
const KEPT_ALIVE_MS = 4000;
/** No request takes longer, unless its connection is broken. */
const LONGEST_MS = 30_000;
/** How often the other instance is asked whether it answers. */
const ASK_MS = 250;
const SILENCE_MS = 1000;
/** While it sends other things, this many questions may go unanswered: it may only be busy. */
const MOST_UNANSWERED = 5;
const ORIGIN = 'http://active.invalid';

const SETTINGS = {
  pipelining: 1,
  keepAliveTimeout: KEPT_ALIVE_MS,
  keepAliveMaxTimeout: KEPT_ALIVE_MS,
  headersTimeout: LONGEST_MS,
} as const;

/**
 * How long a connection for streams is kept for the next one: a handshake takes a millisecond, and there may be any number
 * of them.
 */
const SPARE_MS = 100;
const LASTING_SETTINGS = { keepAliveTimeout: SPARE_MS, keepAliveMaxTimeout: SPARE_MS } as const;

export interface UpstreamOptions {
  readonly target: ForwardTarget;
  /** Called when it answers for the first time, or again. */
  reached(): void;
  /** Called with the milliseconds that it took to answer. */
  answered(milliseconds: number): void;
  elapsed(): number;
}

/** The active instance over the network. */
export function connectUpstream(options: UpstreamOptions): Upstream {
  const { target, elapsed } = options;
  const { Client, Pool } = loadUndici();
  /** Which of the keys the next connection uses; it changes when one is turned away. */
  let failures = 0;
  let isUp = true;
  let hasAnswered = false;
  let isClosed = false;

  let unanswered = 0;
  const sockets = new Set<TLSSocket>();
  let readBefore = 0;
  let handshakes = 0;
  /** Connections for streams come last: each stream needs one, and anyone may ask for any number of them. */
  const waiting = { ending: [] as (() => void)[], lasting: [] as (() => void)[] };

  function connectFor(kind: keyof typeof waiting): buildConnector.connector {
    return (_options, callback) => {
      function shakeHands(): void {
        const key = target.keys[failures % target.keys.length];
        if (isClosed || key === undefined) {
          callback(new Error('There is nobody to connect to'), null);
          return;
        }
        handshakes += 1;
        connectWithKey(target.address, key, (cause, socket) => {
          handshakes -= 1;
          if (cause !== null) failures += 1;
          if (cause === null && socket !== null) {
            sockets.add(socket);
            socket.once('close', () => {
              sockets.delete(socket);
              readBefore += socket.bytesRead;
            });
            callback(null, socket);
          } else callback(cause ?? new Error('There is no connection'), null);
          (waiting.ending.shift() ?? waiting.lasting.shift())?.();
        });
      }
      if (handshakes < HANDSHAKES) shakeHands();
      else waiting[kind].push(shakeHands);
    };
  }

  function open() {
    const ending = { ...SETTINGS, connect: connectFor('ending'), bodyTimeout: 0 };
    const lasting = { ...ending, ...LASTING_SETTINGS, connect: connectFor('lasting') };
    return {
      node: new Pool(ORIGIN, { ...ending, connections: CONNECTIONS.node }),
      operator: new Pool(ORIGIN, { ...ending, connections: CONNECTIONS.operator }),
      public: new Pool(ORIGIN, { ...ending, connections: CONNECTIONS.public }),
      lasting: new Pool(ORIGIN, { ...lasting, connections: CONNECTIONS.lasting }),
      asking: new Client(ORIGIN, ending),
    };
  }

  let pools = open();

  /** The bytes that have arrived from it so far. */
  function received(): number {
    return [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, readBefore);
  }

  async function ask(): Promise<void> {
    const sentAt = elapsed();
    const before = received();
    const answer = await readWhole(pools.asking, '/healthz', SILENCE_MS);
    // If this thread is what was slow, what has arrived meanwhile is read first.
    if (answer === null) await setImmediate();
    if (isClosed) return;
    const wasUp = isUp && hasAnswered;
    unanswered = answer === null ? unanswered + 1 : 0;
    const answers = answer?.status === 200;
    const isBusy = answer === null && wasUp && unanswered < MOST_UNANSWERED && received() > before;
    isUp = answers || isBusy;
    if (answers) {
      hasAnswered = true;
      options.answered(elapsed() - sentAt);
      if (!wasUp) options.reached();
    } else if (!isBusy) {
      end();
      pools = open();
    }
    timer = setTimeout(() => void ask(), Math.max(0, sentAt + ASK_MS - elapsed()));
  }

  function end(): void {
    for (const pool of Object.values(pools)) void pool.destroy().catch(() => undefined);
  }

  let timer: NodeJS.Timeout | null = null;
  void ask();
  return {
    isUp: () => isUp,
    dispatch: (given, lane, handlers) => void pools[lane].dispatch(given, handlers),
    get lasting() {
      return pools.lasting;
    },
    read: async (path, milliseconds) => (isUp ? readWhole(pools.public, path, milliseconds) : null),
    close() {
      isClosed = true;
      for (const each of [...waiting.ending.splice(0), ...waiting.lasting.splice(0)]) each();
      if (timer !== null) clearTimeout(timer);
      const late = setTimeout(end, SILENCE_MS).unref();
      const taken = [pools.node, pools.operator, pools.public];
      void Promise.allSettled(taken.map((pool) => pool.close())).then(() => {
        clearTimeout(late);
        end();
      });
    },
  };
}

/** The server of this thread itself, for requests that were held when its instance became active. */
export function localUpstream(socketPath: string): Upstream {
  const { Pool } = loadUndici();
  const pool = new Pool(ORIGIN, { ...SETTINGS, socketPath, connections: CONNECTIONS.public });
  return {
    isUp: () => true,
    dispatch: (given, _lane, handlers) => void pool.dispatch(given, handlers),
    lasting: pool,
    read: (path, milliseconds) => readWhole(pool, path, milliseconds),
    close: () => void pool.destroy().catch(() => undefined),
  };
}

async function readWhole(
  dispatcher: Dispatcher,
  path: string,
  milliseconds: number,
): Promise<WholeAnswer | null> {
  try {
    const signal = AbortSignal.timeout(milliseconds);
    const { statusCode: status, body } = await dispatcher.request({ path, method: 'GET', signal });
    return { status, body: await body.text() };
  } catch {
    return null;
  }
}
