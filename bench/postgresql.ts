/**
 * Joins with the state in PostgreSQL, compared with a bare server that parses, verifies and signs the same, and inserts
 * its rows into the same database in transactions as large as they become by themselves.
 */
import { join } from 'node:path';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { enrollmentsAt } from './enrollments.ts';
import { startInstances } from './instances.ts';
import type { Load } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report } from './report.ts';
import { startBare } from './servers.ts';

const TARGET = 0.5;
const CONNECTIONS = 32;

export async function benchPostgresql(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads } = settings;
  const connections = settings.connections ?? CONNECTIONS;
  await using instances = await startInstances();
  const na = await instances.start(threads, cpuProf && join(cpuProf, 'postgresql'));
  const { network } = na;
  const operatorKey = signerFromSeed(Buffer.from(network.operatorSeed, 'base64')).publicKey;
  const { url } = instances;
  await using bare = await startBare({
    network: { place: { url }, operatorKey, audience: network.audience },
  });
  const [ours, theirs] = (await contest(
    [
      { name: 'joins', run: enrollmentsAt(na, load, connections).joins },
      { name: 'joins, bare', run: enrollmentsAt({ ...bare, network }, load, connections).joins },
    ],
    settings,
  )) as [Measured, Measured];
  return {
    benchmark: 'postgresql',
    about: `joins on ${connections} connections, ${threads} thread(s), state in PostgreSQL`,
    lines: [ours, theirs].map(lineOf),
    comparisons: [compare(ours, theirs, TARGET)],
    notes: [
      'the database had its own CPU in addition to that of the servers',
      ...busyClientNotes([ours, theirs]),
    ],
  };
}
