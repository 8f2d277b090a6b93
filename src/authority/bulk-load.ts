import { setFlagsFromString } from 'node:v8';

/**
 * Runs a load that fills the heap with what stays there. Nobody waits for answers meanwhile, so marking
 * may stop the program: marking beside the load would keep whatever dies during it, which for a million
 * nodes takes a hundred megabytes and more until the next full collection.
 */
export function loadInBulk<T>(load: () => T): T {
  setFlagsFromString('--no-incremental-marking');
  try {
    return load();
  } finally {
    setFlagsFromString('--incremental-marking');
  }
}
