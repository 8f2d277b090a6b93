/** Requests to authorities whose TLS certificate a file of the user vouches for. */
import { readFileSync } from 'node:fs';
import type { Fetch } from '../client/options.ts';
import { onLocalFiles } from './exit-codes.ts';

/** Trusts the certificates of the file alone. */
export function fetchTrusting(caFile: string): Fetch {
  const ca = onLocalFiles(() => readFileSync(caFile, 'utf8'));
  // Loaded only where it is used: it takes longer than many a command.
  const sending = import('undici').then(({ Agent, fetch }) => {
    const dispatcher = new Agent({ connect: { ca } });
    return { dispatcher, fetch };
  });
  return async (address, init) => {
    const { dispatcher, fetch } = await sending;
    const { body, headers, method, redirect, signal } = init;
    const answer = await fetch(address, {
      dispatcher,
      ...(body != null && { body: String(body) }),
      ...(headers !== undefined && { headers: Object.fromEntries(new Headers(headers)) }),
      ...(method !== undefined && { method }),
      ...(redirect !== undefined && { redirect }),
      ...(signal != null && { signal }),
    });
    return answer as unknown as Response;
  };
}
