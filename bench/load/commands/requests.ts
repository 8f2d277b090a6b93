/** `load requests`: signed requests for another program, made as it reads them. */
import { once } from 'node:events';
import { usageFailure } from '../../../src/cli/kernel/errors.ts';
import { signingNode } from '../fleet-folder.ts';
import {
  evidenceAbout,
  issuerNamed,
  mixedRequests,
  vegetaTarget,
  verificationBody,
} from '../mix.ts';
import { fleetIn, mixOf, type PlaceOptions } from './place.ts';

interface RequestsOptions extends PlaceOptions {
  readonly fleet?: string;
  readonly mix: string;
  readonly bulletins?: boolean;
  readonly count?: number;
  readonly body?: boolean;
}

export async function runRequests(options: RequestsOptions): Promise<void> {
  const mix = mixOf(options.mix);
  if (mix.renew) {
    throw usageFailure(
      'Renewals need npm run load -- run: another program does not save the new certificates, and the old ones end',
    );
  }
  const isSigned = (mix.heartbeat ?? 0) > 0;
  if (isSigned && options.fleet === undefined) throw usageFailure('Heartbeats need --fleet');
  const fleet = isSigned ? fleetIn(options.fleet ?? '') : null;
  const issuer = issuerNamed('load');
  const requests = mixedRequests(fleet?.nodes.map(signingNode) ?? [], {
    mix,
    bulletins: options.bulletins === true,
    evidence: verificationBody(issuer, evidenceAbout(issuer, 'load')),
    validityHours: fleet?.network.validity_hours ?? 1,
  });
  if (options.body) {
    process.stdout.write(`${requests.next().request.body}\n`);
    return;
  }
  const count = options.count ?? Number.POSITIVE_INFINITY;
  for (let made = 0; made < count; made += 1) {
    const line = `${vegetaTarget(requests.next().request, options.url)}\n`;
    // A timestamp is fresh for minutes, so requests must not be made long before they are read.
    if (!process.stdout.write(line)) await once(process.stdout, 'drain');
  }
}
