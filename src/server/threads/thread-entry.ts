import { workerEntry } from '../../base/worker-entry.ts';

/** The module that a thread or child process of the service starts with. */
export function threadEntry(
  name: 'edge' | 'list' | 'watchdog' | 'backup' | 'scrub' | 'signer',
): URL {
  return workerEntry(name, import.meta.url);
}
