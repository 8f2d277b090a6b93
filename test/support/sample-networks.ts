/**
 * Networks for viewing and measuring pages: an empty one, one of the usual size, a large one, and one in which all
 * names are long. Each belongs to a real authority, and is created by requests of its operators and nodes.
 */
import assert from 'node:assert/strict';
import { jsonText } from '../../src/base/json/write.ts';
import type { TestAuthority } from './authority.ts';
import { HOUR, MINUTE } from './clock.ts';
import { get, heartbeat, joinedNode, operate, send, type TestNode } from './requests.ts';
import { signAgentDescriptor } from './signing.ts';
import {
  attest,
  importFeed,
  issued,
  recognize,
  revokeAttestation,
  revokeTreaty,
  type Sovereign,
  sovereign,
} from './trust.ts';

export interface SampleNetwork {
  readonly name: string;
  readonly about: string;
  readonly nodes: number;
  /** Includes the network itself; at least three unless there are no treaties. */
  readonly sovereigns: number;
  readonly treaties: number;
  /** All nodes report, and no treaty is about to end. */
  readonly isHealthy?: boolean;
  /** The full name for this short name. */
  nameOf(short: string): string;
}

const LONG = 120;
const LONGEST_NODE_NAME = 64;

export const SAMPLE_NETWORKS: readonly SampleNetwork[] = [
  {
    name: 'empty',
    about: 'nothing yet',
    nodes: 0,
    sovereigns: 1,
    treaties: 0,
    nameOf: (short) => short,
  },
  {
    name: 'usual',
    about: '60 nodes, 13 sovereigns, 30 treaties',
    nodes: 60,
    sovereigns: 13,
    treaties: 30,
    nameOf: (short) => short,
  },
  {
    name: 'large',
    about: '60 nodes, 400 sovereigns, 2,000 treaties',
    nodes: 60,
    sovereigns: 400,
    treaties: 2000,
    nameOf: (short) => short,
  },
  {
    name: 'long-names',
    about: `12 nodes, 8 sovereigns, 20 treaties, names of ${LONG} characters`,
    nodes: 12,
    sovereigns: 8,
    treaties: 20,
    // Without any place where a line may break.
    nameOf: (short) =>
      short.replaceAll(/[^a-z0-9]/g, '').padEnd(LONG, 'abcdefghijklmnopqrstuvwxyz'),
  },
];

/** For the pictures of documents. */
export const HEALTHY_NETWORK: SampleNetwork = {
  name: 'healthy',
  about: '60 nodes, 13 sovereigns, 30 treaties, and nothing to do',
  nodes: 60,
  sovereigns: 13,
  treaties: 30,
  isHealthy: true,
  nameOf: (short) => short,
};

export function sampleNetwork(name: string): SampleNetwork {
  const found = SAMPLE_NETWORKS.find((sample) => sample.name === name);
  assert.ok(found !== undefined, name);
  return found;
}

/** The items to request from pages about single items; null if the network has none. */
export interface SampleSubjects {
  readonly self: string;
  /** A sovereign that the network trusts, and one that it no longer trusts. */
  readonly trusted: string | null;
  readonly distrusted: string | null;
  readonly treaty: string | null;
  readonly revokedTreaty: string | null;
  readonly attestation: string | null;
  readonly capability: string | null;
}

const REVOKED_NODES: readonly number[] = [3, 8];

const NAMES = [
  'helios-grid',
  'port-authority',
  'north-rail',
  'tidewater',
  'old-mill',
  'harbor-watch',
  'city-transit',
  'river-pilots',
  'signal-house',
  'east-quarry',
  'summit-relay',
  'orchard-coop',
  'lighthouse',
];

/** The age of a network when it is viewed. */
const LIFETIME = 12 * HOUR;

/** When a network must be founded so that it can be viewed at the real present, which browsers use. */
export function foundingTime(present: number): number {
  return present - LIFETIME;
}

/** The name under which the network is founded. */
export function networkNameOf(sample: SampleNetwork): string {
  return sovereignName(sample, 0);
}

/** Simulates half a day of a network that was just founded under `networkNameOf(sample)`. */
export async function fillNetwork(
  na: TestAuthority,
  sample: SampleNetwork,
): Promise<SampleSubjects> {
  const present = na.clock.now() + LIFETIME;
  const nodes = await admitNodes(na, sample);
  const sovereigns = Array.from({ length: sample.sovereigns }, (_, index) =>
    sovereign(sovereignName(sample, index)),
  );
  const treaties = await recognizeAll(na, sample, sovereigns);
  na.clock.advance(2 * HOUR);
  const attestation = sample.treaties === 0 ? null : await attestAll(na, sample);
  if (sample.treaties > 0) await importFeeds(na, sovereigns);
  await liveUntil(na, sample, nodes, present);
  const capability = await registerAgents(na, sample, nodes);
  await na.runTrustCycle();
  return {
    self: sovereignName(sample, 0),
    trusted: sovereigns[2]?.name ?? null,
    distrusted: sovereigns.length > 1 ? (sovereigns.at(-1)?.name ?? null) : null,
    ...treaties,
    attestation,
    capability,
  };
}

/** Heartbeats and a recorded minute in each quarter of an hour, so that there is a history to draw. */
async function liveUntil(
  na: TestAuthority,
  { isHealthy = false }: SampleNetwork,
  nodes: readonly TestNode[],
  present: number,
): Promise<void> {
  while (na.clock.now() < present) {
    na.clock.advance(Math.min(13 * MINUTE, present - na.clock.now()));
    const left = present - na.clock.now();
    await Promise.all(
      nodes.map(async (node, index) => {
        if (REVOKED_NODES.includes(index) || (!isHealthy && isOut(index, left))) return;
        const status = !isHealthy && index % 25 === 1 && left < 4 * HOUR ? 'degraded' : 'healthy';
        assert.equal((await heartbeat(na, node, { status })).status, 200);
      }),
    );
    na.clock.advance(Math.min(2 * MINUTE, present - na.clock.now()));
    // The nodes are counted when the dashboard is read.
    await get(na, '/dashboard.json');
    await na.recordHistory();
  }
}

/** Some nodes have an outage of an hour, and others have fallen silent by the present. */
function isOut(index: number, left: number): boolean {
  return index % 5 === 2 ? left > 6 * HOUR && left < 7 * HOUR : index % 7 === 4 && left < 3 * HOUR;
}

function sovereignName({ nameOf, sovereigns }: SampleNetwork, index: number): string {
  const short = sovereigns <= NAMES.length || index === 0 ? NAMES[index] : undefined;
  return nameOf(short ?? `sovereign-${String(index).padStart(4, '0')}`);
}

/** Operators named and labeled most nodes. */
async function admitNodes(
  na: TestAuthority,
  { nodes, nameOf }: SampleNetwork,
): Promise<TestNode[]> {
  const admitted: TestNode[] = [];
  for (let index = 0; index < nodes; index += 1) {
    const kind = ['client', 'anchor', 'bridge'][index % 3] ?? '';
    const labels = { env: index % 5 === 0 ? 'staging' : 'prod', rack: `r${index % 4}` };
    const description = index % 6 !== 5 && {
      name: nameOf(`${kind}-${index}`).slice(0, LONGEST_NODE_NAME),
      labels: { ...labels, site: nameOf('harbor').slice(0, LONGEST_NODE_NAME - 1) },
    };
    admitted.push(await joinedNode(na, { roles: [`role:${kind}`], ...description }));
    na.clock.advance(2 * MINUTE);
    await na.recordHistory();
  }
  for (const index of REVOKED_NODES) {
    const certId = admitted[index]?.certId;
    if (certId === undefined) continue;
    const reason = index === 3 ? 'key_compromise' : 'superseded';
    await issued(operate(na, '/admin/revoke', { cert_id: certId, reason }));
  }
  return admitted;
}

/** Issues treaties in every state. At the end, nobody recognizes the last sovereign. */
async function recognizeAll(
  na: TestAuthority,
  { treaties, nameOf, isHealthy = false }: SampleNetwork,
  sovereigns: readonly Sovereign[],
): Promise<Pick<SampleSubjects, 'treaty' | 'revokedTreaty'>> {
  const last = sovereigns.length - 1;
  const lengths = isHealthy ? [720, 168, 336] : [720, 168, 30];
  let treaty: string | null = null;
  let revokedTreaty: string | null = null;
  for (let index = 0; index < treaties; index += 1) {
    const from = index % sovereigns.length;
    const to = partnerOf(index, sovereigns.length);
    const { treaty_id } = await issued(
      recognize(na, {
        issuer_sovereign_id: sovereigns[from]?.name ?? '',
        subject_sovereign_id: sovereigns[to]?.name ?? '',
        subject_public_keys: [sovereigns[to]?.key.publicKey ?? ''],
        validity_hours:
          isHealthy || from === 0 || index % 9 !== 4 ? (lengths[index % 3] ?? 720) : 1,
        scope: { allowed_roles: ['role:client', nameOf('role:pilot')] },
        metadata: { agreed_by: nameOf('council') },
      }),
    );
    if (to === last || (from !== 0 && index % 11 === 5)) {
      await revokeTreaty(na, treaty_id, { reason: nameOf('signing key exposed') });
      revokedTreaty ??= String(treaty_id);
    } else {
      treaty ??= String(treaty_id);
    }
  }
  return { treaty, revokedTreaty };
}

/**
 * The network itself recognizes the second, third and last sovereign first; after that, everyone recognizes everyone.
 */
function partnerOf(index: number, sovereigns: number): number {
  const from = index % sovereigns;
  const turn = Math.floor(index / sovereigns);
  if (from === 0) return [1, 2, sovereigns - 1][turn] ?? (turn % (sovereigns - 1)) + 1;
  return (from + 1 + ((index * 7 + turn) % (sovereigns - 1))) % sovereigns;
}

/** Returns the id of a revoked attestation. */
async function attestAll(na: TestAuthority, { nameOf }: SampleNetwork): Promise<string> {
  const badge = await issued(attest(na, { subject_id: nameOf('survey-drone-12') }));
  await issued(attest(na, { subject_id: nameOf('dispatch-agent') }));
  await revokeAttestation(na, badge.attestation_id, { reason: nameOf('decommissioned') });
  return String(badge.attestation_id);
}

async function importFeeds(na: TestAuthority, sovereigns: readonly Sovereign[]): Promise<void> {
  for (const from of sovereigns.slice(1, 3)) {
    const ids = [`badge-of-${from.name}`, `gate-of-${from.name}`];
    const feed = from.feed(na.clock.now(), 1, {
      revoked_attestation_ids: ids,
      revocation_reasons: Object.fromEntries(ids.map((id) => [id, 'key compromised'])),
    });
    await issued(importFeed(na, feed));
  }
}

/** Returns the capability that all agents have. */
async function registerAgents(
  na: TestAuthority,
  { nameOf }: SampleNetwork,
  nodes: readonly TestNode[],
): Promise<string | null> {
  const capability = nameOf('survey');
  const agents = nodes.slice(0, 3);
  for (const [index, { key }] of agents.entries()) {
    const agent = {
      agent_id: nameOf(`agent-${index}`),
      network_name: nameOf('helios-grid'),
      capabilities: [capability, nameOf('mapping')],
      endpoint: { host: `agent-${index}.example`, port: 7448 },
      lifetimeSeconds: 3600,
    };
    const body = jsonText(signAgentDescriptor(agent, key, na.clock.now()));
    assert.equal((await send(na, 'POST', '/agents', { body })).status, 200);
  }
  return agents.length === 0 ? null : capability;
}
