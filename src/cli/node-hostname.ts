/** The host name that a node reports when it joins, so that its operators recognize the machine. */
import { hostname } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';
import { isHostName } from '../protocol/rows/node-description.ts';

export interface HostnameOptions {
  /** False for none; by default that of the machine. */
  readonly hostname?: string | false;
}

export function addHostnameOptions(command: Command): Command {
  return command
    .option(
      '--hostname <name>',
      'host name to report to the operators when joining (default: that of this machine)',
      hostName,
    )
    .option('--no-hostname', 'report no host name');
}

/** A machine may have a host name that cannot be reported. */
export function reportedHostname(options: HostnameOptions): { readonly hostname?: string } {
  const { hostname: given = hostname() } = options;
  return given !== false && isHostName(given) ? { hostname: given } : {};
}

function hostName(text: string): string {
  if (isHostName(text)) return text;
  throw new InvalidArgumentError('It must be 1 to 253 letters, digits and . _ -');
}
