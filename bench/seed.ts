/**
 * Creates a data folder like that of a large network: certificates, some of them revoked, open invites and registered
 * agents, written through the store like everything else. Keys are random bytes with which nobody can sign, and the
 * audit log is empty; nodes that send heartbeats are enrolled afterward.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import type { AgentRegistration } from '../machines/agent-registration.ts';
import type { Attestation } from '../machines/attestation.ts';
import { type Certificate, UNTOUCHED } from '../machines/certificate.ts';
import type { Invite } from '../machines/invite.ts';
import type { Treaty } from '../machines/recognition-treaty.ts';
import type { Crl } from '../machines/signed-sequence.ts';
import { createCrlDigest, crlEntry } from '../src/authority/lists/crl.ts';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { wholeNumber } from '../src/cli/kernel/options.ts';
import { initNetwork } from '../src/cli/service/init-network.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { FILES } from '../src/server/config/data-folder.ts';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import { networkOf } from '../src/store/network-identity.ts';
import type { Store, SubjectWrite, Unit } from '../src/store/store.ts';

export interface SeedCounts {
  readonly nodes: number;
  readonly revoked: number;
  readonly invites: number;
  readonly agents: number;
  /** Nodes with a name and a rack, one of which has been silent for two hours; none by default. */
  readonly named?: number;
  /** Treaties of this sovereign with others, each in force; none by default. */
  readonly treaties?: number;
  /** Attestations for subjects that each have one; none by default. */
  readonly attestations?: number;
}

const HOUR = 3_600_000;
/** Subjects that are committed in one unit: that takes a fraction of the time of many units. */
const BATCH = 5000;
const RACK_NODES = 40;
const SILENT_RACK = 7;
/** The approximate number of agents that share a tag. */
const AGENTS_PER_TAG = 100;

/** The nodes of a large network by default. */
export const MANY_NODES = 1_000_000;

/** One in ten nodes has an agent and one in a hundred is revoked. */
export function largeNetwork(nodes: number): SeedCounts {
  const tenth = Math.floor(nodes / 10);
  return { nodes, revoked: Math.floor(nodes / 100), invites: tenth, agents: tenth };
}

/** The data folder of a network without nodes. */
export function newNetwork(dataDir: string) {
  return initNetwork({
    dataDir,
    networkName: 'bench',
    networkVersion: 'v0.1',
    now: systemRuntime.now(),
    randomSeed: () => systemRuntime.randomBytes(32),
  });
}

/**
 * Fills a new data folder and the store opened on it; the newest liveness rows have the current time. Returns the
 * certificates that are not revoked.
 */
export async function seed(
  dataDir: string,
  counts: SeedCounts,
  open: (dataDir: string) => Store | Promise<Store> = openFolder,
): Promise<{ readonly issued: string[] }> {
  const now = systemRuntime.now();
  const { na_public_key: issuer } = newNetwork(dataDir);
  const store = await open(dataDir);
  const digest = createCrlDigest(issuer);
  const keys: string[] = [];
  const issued: string[] = [];

  function issue(index: number): SubjectWrite {
    const { id, context, write } = certificate(index, counts, now);
    keys.push(context.nodePublicKey);
    if (context.revokedAt === null) issued.push(id);
    else digest.add(crlEntry(issuer, id, context.revokedAt, context.revocationReason ?? ''));
    return write;
  }
  async function write(count: number, subject: (index: number) => SubjectWrite): Promise<void> {
    for (let start = 0; start < count; start += BATCH) {
      const length = Math.min(BATCH, count - start);
      await store.commit(unitOf(Array.from({ length }, (_, index) => subject(start + index))));
    }
  }
  const { nodes, revoked, invites, agents, named = 0, treaties = 0, attestations = 0 } = counts;
  await write(nodes, issue);
  for (let start = 0; start < issued.length; start += BATCH) {
    const seen = issued.slice(start, start + BATCH);
    await store.touchMany(
      seen.map((id, index) => contact(id, revoked + start + index, named)),
      [],
    );
  }
  await store.commit(unitOf([revocationList(revoked, digest.value([]), now)]));
  await write(named, (index) => description(index, keys[index] ?? ''));
  await write(invites, () => invite(now));
  await write(agents, (index) => agent(index, agents, now));
  await write(treaties, (index) => treaty(index, now));
  await write(attestations, (index) => attestation(index, now));
  await store.close();
  return { issued };
}

/** The state says whose it is: otherwise, it cannot be moved. */
function openFolder(dataDir: string): Store {
  const genesis = JSON.parse(readFileSync(join(dataDir, FILES.genesis), 'utf8')) as GenesisBlock;
  return openLmdbStore(dataDir, networkOf(genesis));
}

function unitOf(subjects: readonly SubjectWrite[]): Unit {
  return { subjects, removals: [], nonces: [], audit: [] };
}

function contact(id: string, index: number, named: number) {
  const now = systemRuntime.now();
  const isSilent = index < named && rackOf(index) === SILENT_RACK;
  const lastSeen = isSilent ? now - 2 * HOUR : now;
  return { id, lastSeen, status: 'healthy', remoteAddr: '192.0.2.1', newestSignedAt: lastSeen };
}

function rackOf(index: number): number {
  return Math.floor(index / RACK_NODES);
}

function description(index: number, nodePublicKey: string): SubjectWrite {
  const rack = `r${rackOf(index).toString().padStart(3, '0')}`;
  const name = `${rack}-${(index % RACK_NODES).toString().padStart(2, '0')}`;
  const context = { name, labels: [`rack=${rack}`], hostname: null };
  return created('node-description', nodePublicKey, 'described', context);
}

function created(kind: string, id: string, value: string, context: object): SubjectWrite {
  return { kind, id, version: 1, replaces: 0, snapshot: { value, context } };
}

/** Revoked certificates come first, in the order of their list. */
function certificate(index: number, { revoked }: SeedCounts, now: number) {
  const isRevoked = index < revoked;
  const context: Certificate = {
    nodePublicKey: randomKey(),
    roles: ['role:client'],
    issuedAt: now - HOUR,
    expiresAt: now + 720 * HOUR,
    maxValidityHours: 720,
    remoteAddr: '192.0.2.1',
    ...UNTOUCHED,
    revokedAt: isRevoked ? now : null,
    revocationReason: isRevoked ? 'cessation_of_operation' : null,
    crlSequence: isRevoked ? index + 1 : null,
  };
  const id = systemRuntime.uuid();
  const value = isRevoked ? 'revoked' : 'issued';
  return { id, context, write: created('certificate', id, value, context) };
}

/** The version of the list that contains all revoked certificates. */
function revocationList(sequence: number, digest: string, now: number): SubjectWrite {
  const context: Crl = {
    sequence,
    crlId: systemRuntime.uuid(),
    issuedAt: now,
    nextUpdate: now + 24 * HOUR,
    digest,
  };
  return created('crl', 'certificates', 'current', context);
}

function invite(now: number): SubjectWrite {
  const context: Invite = {
    roles: ['role:client'],
    maxValidityHours: 720,
    createdAt: now,
    expiresAt: now + 24 * HOUR,
    recipient: null,
    usedAt: null,
    usedBy: null,
  };
  return created('invite', sha256Hex(systemRuntime.randomBytes(32)), 'unused', context);
}

function agent(index: number, agents: number, now: number): SubjectWrite {
  const key = randomKey();
  const capabilities = [`family:tag-${index % Math.max(1, Math.floor(agents / AGENTS_PER_TAG))}`];
  const expiresAt = now + 24 * HOUR;
  const descriptor = {
    agent_id: `agent-${index}`,
    capabilities,
    endpoint: 'https://agent.example',
    expires_at: formatInstant(expiresAt),
    metadata: {},
    network_name: 'bench',
    node_public_key: key,
    registered_at: formatInstant(now),
    signature: 'A'.repeat(88),
    version: 'v1',
  };
  const context: AgentRegistration = {
    json: canonicalJson(descriptor),
    content: 'A'.repeat(44),
    superseded: [],
    capabilities,
    registeredAt: now,
    expiresAt,
    heldUntil: expiresAt,
  };
  return created('agent-registration', key, 'registered', context);
}

/** The members that treaties and attestations share; nobody has signed them. */
function recordOf(now: number) {
  const issuedAt = formatInstant(now);
  return {
    issuer_sovereign_id: 'bench',
    status: 'active',
    issued_at: issuedAt,
    valid_from: issuedAt,
    expires_at: formatInstant(now + 720 * HOUR),
    issued_by: 'na-1',
    signatures: [],
  };
}

function treaty(index: number, now: number): SubjectWrite {
  const treatyId = systemRuntime.uuid();
  const subject = `sovereign-${index.toString().padStart(6, '0')}`;
  const keys = [randomKey()];
  const record = {
    ...recordOf(now),
    treaty_id: treatyId,
    subject_sovereign_id: subject,
    subject_public_keys: keys,
    scope: { allowed_roles: [], accepted_statuses: ['active'], claims: {} },
    metadata: {},
  };
  const context: Treaty = {
    json: canonicalJson(record),
    issuer: 'bench',
    subject,
    subjectKeys: keys,
    issuedAt: now,
    validFrom: record.valid_from,
    expiresAt: now + 720 * HOUR,
    revokedAt: null,
    revocationReason: null,
    followed: [],
  };
  return created('recognition-treaty', treatyId, 'active', context);
}

function attestation(index: number, now: number): SubjectWrite {
  const attestationId = systemRuntime.uuid();
  const subject = `subject-${index}`;
  const record = {
    ...recordOf(now),
    attestation_id: attestationId,
    subject_id: subject,
    subject_public_key: null,
    roles: ['role:client'],
    claims: {},
  };
  const context: Attestation = {
    json: canonicalJson(record),
    issuer: 'bench',
    subject,
    issuedAt: now,
    revokedAt: null,
    revocationReason: null,
  };
  return created('attestation', attestationId, 'active', context);
}

function randomKey(): string {
  return systemRuntime.randomBytes(32).toString('base64');
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const command = new Command('seed')
    .description('makes a data folder with a large network in it')
    .requiredOption('--data-dir <folder>', 'a folder that does not exist yet')
    .option('--nodes <count>', 'certificates', wholeNumber(10_000_000), 1_000_000)
    .option('--revoked <count>', 'of them revoked', wholeNumber(10_000_000), 10_000)
    .option('--invites <count>', 'open invites', wholeNumber(10_000_000), 100_000)
    .option('--agents <count>', 'registered agents', wholeNumber(10_000_000), 100_000);
  await command.parseAsync();
  const { dataDir, ...counts } = command.opts<SeedCounts & { readonly dataDir: string }>();
  await seed(dataDir, counts);
}
