/**
 * An entire fleet returns at once: to an authority that turns away requests that have waited too long, and to one that
 * answers all of them in the order of arrival.
 */

import type { Settings } from './contest.ts';
import { inviteSigner, SITE } from './fleet.ts';
import { type BenchedReturn, type Load, type ReturnCost, startLoad } from './load.ts';
import { latencyText, probeUntil } from './probes.ts';
import type { Report } from './report.ts';
import { assertAccepted } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

/** Only a few at once, so that none of them has to wait as long as requests may wait here. */
const ENROLLING = { connections: 16, seconds: 600, rate: null };
const CONNECTIONS = 16_000;
/**
 * Twice as long as the authority lets requests wait. Both times are shorter than in production, because file
 * descriptors limit how many requests can wait here.
 */
const PATIENCE_MS = 1000;
const LONGEST_MS = 60_000;
const ADMISSION = { on: { MESH_LONGEST_WAIT_MS: '500' }, off: { MESH_LONGEST_WAIT_MS: '0' } };

export async function benchStorm(load: Load, settings: Settings): Promise<Report> {
  const { connections, returning: nodes, progress } = settings;
  const plan = {
    site: SITE,
    connections: connections ?? CONNECTIONS,
    withinMs: 1000,
    patienceMs: PATIENCE_MS,
    longestMs: LONGEST_MS,
  };
  progress(`storm: turning away on`);
  const on = await stormed(load, settings, ADMISSION.on, plan);
  progress(`storm: turning away off`);
  await using other = startLoad();
  const off = await stormed(other, settings, ADMISSION.off, plan);
  return {
    benchmark: 'storm',
    about: `${nodes} nodes come back within a second over ${plan.connections} connections, and wait ${PATIENCE_MS} ms`,
    lines: [],
    comparisons: [],
    notes: [
      ...notesOf('those who waited 500 ms are turned away', on, nodes),
      ...notesOf('all are answered in order', off, nodes),
    ],
  };
}

interface Storm {
  readonly result: ReturnCost;
  readonly health: readonly number[];
  readonly operator: readonly number[];
}

async function stormed(
  load: Load,
  { returning: nodes, threads }: Settings,
  environment: Readonly<Record<string, string>>,
  plan: Omit<BenchedReturn, 'target'>,
): Promise<Storm> {
  await using na = await startAuthority(null, threads, undefined, undefined, environment);
  await enroll(load, na, nodes);
  const returning = load.ask('return', { target: na, ...plan });
  const nextInvite = inviteSigner(na.network);
  const [health, operator, result] = await Promise.all([
    probeUntil(na, returning),
    probeUntil(na, returning, () => nextInvite({})),
    returning,
  ]);
  return { result, health, operator };
}

async function enroll(load: Load, na: AuthorityProcess, nodes: number): Promise<void> {
  const plan = { target: na, ...ENROLLING };
  assertAccepted('NA joins', await load.ask('enroll', { plan, network: na.network, nodes }));
}

function notesOf(name: string, { result, health, operator }: Storm, nodes: number): string[] {
  const { seconds, beaten, sent, shed, givenUp, serverCpuSeconds } = result;
  const share = (count: number) => `${((100 * count) / sent).toFixed(1)} %`;
  const end =
    beaten === nodes
      ? `all had beaten after ${seconds.toFixed(1)} s`
      : `${nodes - beaten} nodes had not beaten after ${seconds.toFixed(1)} s`;
  return [
    `${name}: ${end}; ${sent} requests, ${share(shed)} turned away, ${share(givenUp)} given up by their nodes; ${serverCpuSeconds.toFixed(1)} s of CPU`,
    `  /healthz meanwhile: ${latencyText(health)}`,
    `  an operator's invites meanwhile: ${latencyText(operator)}`,
  ];
}
