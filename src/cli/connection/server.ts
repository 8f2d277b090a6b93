/** How commands reach the authority, and how long they wait for it. */
import { type Command, Option } from 'commander';
import { inWords } from '../../base/duration.ts';
import type { Fetch, ServerOptions } from '../../client/options.ts';
import { createPublicClient, type PublicClient } from '../../client/public-client.ts';
import { addLocalOptions, serverUrl } from '../kernel/options.ts';
import { type OutputOptions, printNotice } from '../kernel/output.ts';
import { whileWaiting } from '../kernel/progress.ts';
import { httpFetch } from './http-fetch.ts';

/** The total time that a command waits; rate limits of an authority are counted per minute. */
const PATIENCE_MS = 600_000;

export interface Reach extends OutputOptions {
  readonly url: string;
  readonly ca?: string;
  readonly wait?: boolean;
}

export function urlOption(): Option {
  return new Option('--url <url>', 'address of the authority')
    .env('MESH_URL')
    .default('http://127.0.0.1:8443')
    .argParser(serverUrl);
}

/** Options of every command that asks an authority. */
export function addServerOptions(command: Command): Command {
  return command.addOption(urlOption()).addOption(caOption()).addOption(waitOption());
}

/** Ends the definition of a command with the options of every public command and its examples. */
export function addPublicOptions(command: Command, lines: readonly string[]): void {
  addLocalOptions(addServerOptions(command), lines);
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
