/** How commands reach the authority, and how long they wait for it. */
import { Option } from 'commander';
import { inWords } from '../base/duration.ts';
import type { Fetch, ServerOptions } from '../client/options.ts';
import { createPublicClient, type PublicClient } from '../client/public-client.ts';
import { httpFetch } from './http-fetch.ts';
import { type OutputOptions, printNotice } from './output.ts';
import { whileWaiting } from './progress.ts';

/** The total time that a command waits; rate limits of an authority are counted per minute. */
const PATIENCE_MS = 600_000;

export interface Reach extends OutputOptions {
  readonly url: string;
  readonly ca?: string;
  readonly wait?: boolean;
}

export function caOption(): Option {
  return new Option(
    '--ca <file>',
    'PEM file of CA certificates to trust for the authority, instead of those of the system',
  ).env('MESH_CA');
}

export function waitOption(): Option {
  const most = inWords(PATIENCE_MS / 1000);
  return new Option(
    '--wait',
    `wait when the authority limits requests or was restored, up to ${most} in total`,
  );
}

export function serverOf({ url, ca, wait, json }: Reach): ServerOptions {
  const ask = httpFetch(ca);
  const fetch: Fetch = (address, init) =>
    whileWaiting('Waiting for the authority', () => ask(address, init));
  if (!wait) return { url, fetch };
  const onLimited = (ms: number) => {
    if (json) return;
    printNotice(`The authority is limiting requests; retrying in ${inWords(ms / 1000)}`);
  };
  return { url, fetch, patienceMs: PATIENCE_MS, onLimited };
}

export function publicClient(options: Reach): PublicClient {
  return createPublicClient(serverOf(options));
}
