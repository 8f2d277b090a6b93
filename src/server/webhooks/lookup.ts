/** Finds the addresses of webhooks, and passes on those alone that may be connected to [events-5]. */
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { createTurns } from '../../base/work.ts';
import { isPublicAddress } from './address.ts';

/** No address of the name may be connected to. */
export class PrivateAddress extends Error {}

/**
 * For `node:http` and `node:net`, which connect to exactly what it answers: a name that leads elsewhere a moment later
 * changes nothing. The system's resolver keeps a thread of the pool that also writes to the disk, for as long as a name
 * server is silent, so it is asked for one name at a time.
 */
export function createLookup(allowsPrivate: boolean): LookupFunction {
  const asked = new Map<string, Promise<readonly LookupAddress[]>>();
  const turns = createTurns();

  function resolve(host: string): Promise<readonly LookupAddress[]> {
    const found =
      asked.get(host) ??
      turns.run(() => lookup(host, { all: true })).finally(() => asked.delete(host));
    asked.set(host, found);
    return found;
  }

  async function allowed(host: string): Promise<LookupAddress[]> {
    const found = await resolve(host);
    const kept = found.filter(({ address }) => allowsPrivate || isPublicAddress(address));
    if (kept.length === 0) throw new PrivateAddress(host);
    return kept;
  }

  return (host, options, answer) => {
    allowed(host).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) answer(null, addresses);
        else answer(null, first?.address ?? '', first?.family);
      },
      (cause) => answer(cause, ''),
    );
  };
}
