/** Where load goes, and whether it may: a fleet belongs to one network, and other nodes there must not suffer. */

import { bareHost } from '../../../src/base/bare-host.ts';
import { certificatesIn, publicClient } from '../../../src/cli/connection/server.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../../../src/cli/kernel/errors.ts';
import type { GenesisBlock } from '../../../src/protocol/records/genesis.ts';
import { type Fleet, readFleet } from '../fleet-folder.ts';
import type { Place } from '../requests.ts';
import { readMetrics } from '../service-metrics.ts';

export interface PlaceOptions {
  readonly url: string;
  readonly ca?: string;
  readonly json?: boolean;
}

export interface GuardOptions extends PlaceOptions {
  /** The name of the network. */
  readonly yes?: string;
}

export function placeOf({ url, ca }: PlaceOptions): Place {
  const { protocol, hostname, host, port, pathname } = new URL(url);
  const isTls = protocol === 'https:';
  const trusted = ca === undefined ? {} : { ca: certificatesIn(ca) };
  return {
    target: {
      host: bareHost(hostname),
      port: Number(port) || (isTls ? 443 : 80),
      ...(isTls && { tls: trusted }),
    },
    site: { host, prefix: pathname.replace(/\/+$/, '') },
  };
}

/** The authority's genesis block, if load may be put on it. Throws otherwise, before anything is sent. */
export async function permittedNetwork(
  options: GuardOptions,
  place: Place,
  fleet: Fleet | null,
): Promise<GenesisBlock> {
  const genesis = await publicClient(options).readGenesis();
  const { network_name: name, network_authority: authority } = genesis;
  if (fleet !== null && fleet.network.authority_key !== authority.public_key) {
    const message = `The fleet belongs to the authority ${fleet.network.authority_key}, but ${options.url} is ${authority.public_key}`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  if (options.yes !== undefined && options.yes !== name) {
    throw usageFailure(`The network is "${name}", not "${options.yes}"; nothing was sent`);
  }
  if (options.yes === name) return genesis;
  const service = await readMetrics(place.target, place.site);
  const others = otherCertificates(service?.issuedCertificates ?? null, fleet);
  if (others === 0) return genesis;
  const cause =
    others === null
      ? `${options.url} does not show /metrics, so it is not known whether "${name}" has other nodes`
      : `"${name}" has issued ${others === 1 ? '1 certificate that is' : `${others} certificates that are`} not of this fleet`;
  throw usageFailure(`${cause}; nothing was sent: use --yes ${name} to put load on it anyway`);
}

/** How many of the certificates that an authority has issued are not of the fleet; null if it is not known. */
export function otherCertificates(issued: number | null, fleet: Fleet | null): number | null {
  return issued === null ? null : Math.max(issued - (fleet?.certificates ?? 0), 0);
}

export function fleetIn(folder: string): Fleet {
  const fleet = onLocalFiles(() => readFleet(folder));
  if (fleet !== null && fleet.nodes.length > 0) return fleet;
  const message = `${folder} has no fleet; run npm run load -- prepare --fleet ${folder}`;
  throw failure(EXIT.unusable, 'local_files', message);
}
