/**
 * Loaded into the authority by `succession`. On SIGUSR2, it writes the longest times for which the main thread did not
 * return to its event loop, and begins anew.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const { TURN_PROBE_FILE: file } = process.env;
const EVERY_MS = 2;

if (isMainThread && file !== undefined) {
  const schedstat = `/proc/self/task/${process.pid}/schedstat`;
  /** Milliseconds of CPU, and of waiting for a processor that other work had. */
  function spent() {
    const [cpu, waited] = readFileSync(schedstat, 'latin1').split(' ');
    return { at: performance.now(), cpu: Number(cpu) / 1e6, waited: Number(waited) / 1e6 };
  }
  const NONE = { elapsed: 0, own: 0, cpu: 0 };
  let last = spent();
  let longest = NONE;

  setInterval(() => {
    const now = spent();
    const elapsed = now.at - last.at - EVERY_MS;
    longest = {
      elapsed: Math.max(longest.elapsed, elapsed),
      own: Math.max(longest.own, elapsed - (now.waited - last.waited)),
      cpu: Math.max(longest.cpu, now.cpu - last.cpu),
    };
    last = now;
  }, EVERY_MS).unref();

  process.on('SIGUSR2', () => {
    writeFileSync(`${file}.new`, JSON.stringify(longest));
    renameSync(`${file}.new`, file);
    longest = NONE;
    last = spent();
  });
}
