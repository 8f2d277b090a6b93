import type { SigningOptions } from './options.ts';
import { createPublicClient } from './public-client.ts';

/** The authority's public key: the given one, or that of `/sovereign.json`, asked for once. */
export function audienceSource(options: SigningOptions): () => Promise<string> {
  let known: Promise<string> | null =
    options.audience === undefined ? null : Promise.resolve(options.audience);
  return async () => {
    known ??= fetchAudience(options);
    try {
      return await known;
    } catch (error) {
      // The next request asks again: one unanswered look-up must not disable the client.
      known = null;
      throw error;
    }
  };
}

async function fetchAudience(options: SigningOptions): Promise<string> {
  return (await createPublicClient(options).sovereign()).network_authority.public_key;
}
