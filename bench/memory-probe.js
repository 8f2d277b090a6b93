/**
 * Loaded into the authority by `memory`. On SIGUSR2, it collects garbage and writes the memory usage, as well as a
 * heap snapshot if a folder for snapshots is given.
 */
import { renameSync, writeFileSync } from 'node:fs';
import inspector from 'node:inspector';
import { join } from 'node:path';
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

const { MEMORY_PROBE_FILE: file, MEMORY_PROBE_SNAPSHOTS: snapshots } = process.env;

if (isMainThread && file !== undefined) {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  // An open inspector turns off the watchdog, which would end a process that stalls to write a snapshot.
  if (snapshots) inspector.open(0, '127.0.0.1');
  process.on('SIGUSR2', () => {
    gc();
    // Only a second collection frees objects with finalizers.
    gc();
    if (snapshots)
      writeHeapSnapshot(join(snapshots, `${Math.floor(process.uptime())}.heapsnapshot`));
    writeFileSync(`${file}.new`, JSON.stringify(process.memoryUsage()));
    renameSync(`${file}.new`, file);
  });
}
