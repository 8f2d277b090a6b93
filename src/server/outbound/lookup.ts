/** Resolves the host names of strangers to the addresses that may be used [events-5]. */
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { createTurns } from '../../base/work.ts';
import { isPublicAddress, type Reach } from './address.ts';

/** None of the name's addresses may be used. The message is the rest of a sentence, for the log. */
export class PrivateAddress extends Error {
  constructor({ setting }: Reach) {
    super(`its name resolves to a private address, which only ${setting} allows`);
  }
}

/**
 * For `node:http` and `node:net`, which connect to exactly these addresses, so DNS rebinding has no effect. The system
 * resolver occupies a thread of the pool that also does disk I/O until the name server answers, so names are resolved
 * one at a time.
 */
export function createLookup(reach: Reach): LookupFunction {
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
    const kept = found.filter(({ address }) => reach.allowsPrivate || isPublicAddress(address));
    if (kept.length === 0) throw new PrivateAddress(reach);
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
