/** Faults inside a child server: modules that Node.js loads before the program, armed by SIGUSR2. */
import { PROGRAM } from './project.ts';

/** Arguments of Node.js that load the fault before the sources; `armed` is true after SIGUSR2. */
export function programWith(fault: string): readonly string[] {
  return ['--import', preloadOf(fault), ...PROGRAM];
}

function preloadOf(fault: string): string {
  const source = `
    import { isMainThread } from 'node:worker_threads';
    import crypto from 'node:crypto';
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    let armed = false;
    if (isMainThread) process.on('SIGUSR2', () => { armed = true; });
    ${fault}
    syncBuiltinESMExports();`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

/** Requires more random bytes than the program keeps in a pool. */
export const MANY_INVITES = { count: 200 };

/** A handler of the authority throws: generating random bytes there fails. */
export const HANDLER_THROWS = programWith(`
  const { randomFillSync } = crypto;
  crypto.randomFillSync = (...args) => {
    if (armed) throw new TypeError('injected into a handler');
    return randomFillSync(...args);
  };`);

/** An effect after a commit throws: the publication of a document. */
export const EFFECT_THROWS = programWith(`
  const { add } = Atomics;
  Atomics.add = (...args) => {
    if (armed) throw new TypeError('injected behind a commit');
    return add(...args);
  };`);

/** A timer throws. */
export const TIMER_THROWS = programWith(`
  const fail = () => { throw new TypeError('injected into a timer'); };
  if (isMainThread) process.on('SIGUSR2', () => setTimeout(fail));`);

/** A start fails once requests are served: reading the number that names the part of the history that it records. */
export const LATE_START_THROWS = programWith(`
  Buffer.prototype.readUIntBE = () => { throw new TypeError('injected into the start'); };`);

/** Threads beat, and the watchdog checks, five times as often. */
const QUICK_WATCHDOG = `
  const { setInterval } = globalThis;
  globalThis.setInterval = (work, ms) => setInterval(work, ms === 500 ? 100 : ms);`;

/** A handler of the authority never returns: generating random bytes there hangs. */
export const AUTHORITY_HANGS = programWith(`
  ${QUICK_WATCHDOG}
  const { randomFillSync } = crypto;
  crypto.randomFillSync = (...args) => {
    while (armed);
    return randomFillSync(...args);
  };`);

/** A request on an edge thread never returns: generating an id there hangs. */
export const EDGE_HANGS = programWith(`
  ${QUICK_WATCHDOG}
  const arming = new BroadcastChannel('arming');
  arming.onmessage = () => { armed = true; };
  arming.unref();
  if (isMainThread) process.on('SIGUSR2', () => arming.postMessage(null));
  const { randomUUID } = crypto;
  crypto.randomUUID = (...args) => {
    while (armed && !isMainThread);
    return randomUUID(...args);
  };`);

/** Failures that no caller and no awaiting code can catch. */
const UNCAUGHT = {
  exception: 'setTimeout(() => { throw new TypeError("injected behind all handlers"); });',
  rejection: 'void Promise.reject(new TypeError("injected behind all handlers"));',
};

/** Conditions that identify the kinds of threads by their worker data. */
const KIND_OF_THREAD = {
  'edge thread': '(workerData ?? null) === null',
  'watchdog thread': 'workerData?.beats !== undefined',
  'signer thread': 'workerData?.isAvailable !== undefined',
  'signed list thread': 'workerData?.keySource !== undefined',
};

export type ThreadKind = keyof typeof KIND_OF_THREAD;

/** Makes threads of this kind fail on their own, several times in a row. */
export function uncaughtIn(kind: ThreadKind, how: keyof typeof UNCAUGHT): readonly string[] {
  return programWith(`
    import { workerData } from 'node:worker_threads';
    const arming = new BroadcastChannel('arming');
    arming.unref();
    if (isMainThread) process.on('SIGUSR2', () => arming.postMessage(null));
    else if (${KIND_OF_THREAD[kind]}) arming.onmessage = () => { for (let i = 0; i < 3; i += 1) { ${UNCAUGHT[how]} } };`);
}

/** Runs the work while processes that it starts fail as soon as they run. */
export async function uncaughtInChildren(
  how: keyof typeof UNCAUGHT,
  work: () => Promise<void>,
): Promise<void> {
  const { NODE_OPTIONS } = process.env;
  const fault = `if (isMainThread) setImmediate(() => { ${UNCAUGHT[how]} });`;
  process.env.NODE_OPTIONS = `--import=${preloadOf(fault)}`;
  try {
    await work();
  } finally {
    if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = NODE_OPTIONS;
  }
}

/** Reading the head of a request on an edge thread throws: generating an id there fails. */
export const EDGE_THROWS = programWith(`
  const arming = new BroadcastChannel('arming');
  arming.onmessage = () => { armed = true; };
  arming.unref();
  if (isMainThread) process.on('SIGUSR2', () => arming.postMessage(null));
  const { randomUUID } = crypto;
  crypto.randomUUID = (...args) => {
    if (armed && !isMainThread) throw new TypeError('injected behind all handlers');
    return randomUUID(...args);
  };`);
