import type { SigningOptions } from './options.ts';
import { createPublicClient } from './public-client.ts';

/** Returns the authority's public key from the options, or else from `/sovereign.json`, fetched once. */
export function audienceSource(options: SigningOptions): () => Promise<string> {
  let known: Promise<string> | null =
    options.audience === undefined ? null : Promise.resolve(options.audience);
  return async () => {
    known ??= fetchAudience(options);
    try {
      return await known;
    } catch (error) {
      // Let the next request try again: one failed look-up must not disable the client.
      known = null;
      throw error;
    }
  };
}

async function fetchAudience(options: SigningOptions): Promise<string> {
  return (await createPublicClient(options).readSovereign()).network_authority.public_key;
}
