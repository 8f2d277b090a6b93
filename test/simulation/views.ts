/** Compares what readers see with what was acknowledged: never less, and never anything that is not on disk. */
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../src/base/json/value.ts';
import type { ListPlace, PageRequest } from '../../src/protocol/contract/inputs.ts';
import type { CallName, CallOf } from './authority-calls.ts';
import { publishedIds, signingNow } from './model/authority-keys.ts';
import { publicationOf } from './model/enrollment.ts';
import type { State } from './model/state.ts';
import { NETWORK, NODES } from './requests.ts';
import { insist } from './violation.ts';
import type { World } from './world.ts';

/** Few, so that lists span several pages. */
const ROWS_PER_PAGE = 3;

/** Checked after every step. */
export async function compareDocuments(world: World): Promise<void> {
  const { shown, documents } = world;
  same('the revocation list', crlAsRead(documents.current('crl')), crlOf(shown));
  const feed = documents.current('sovereign_revocation_feed');
  same('the revocation feed', feedAsRead(feed), feedOf(shown, NETWORK));
  const foreign = documents.current('revocation_feed_of:elsewhere');
  if (shown.publications.has('elsewhere')) {
    same('the feed of another issuer', feedAsRead(foreign), feedOf(shown, 'elsewhere'));
  } else same('the feed of another issuer', foreign, null);
  if (shown.activePolicy !== null) {
    same('the policy', documents.current('policy')?.policy_id, shown.activePolicy);
  }
  const license = documents.current('data_license_policy')?.licensee_sovereign_id ?? null;
  same('the data-license policy', license, world.license);
  compareKeys(world);
  // Readers wait during a key change, and by the time they were served everything in flight would be done.
  if (world.isChangingKeys) return;
  const { count } = await read(world, 'countNodes', null);
  const { least, most } = world.contacts.activeBounds(shown, world.now);
  insist(
    Number(count) >= least && Number(count) <= most,
    () => `${count} nodes are active instead of ${least} to ${most}`,
  );
  await compareAgents(world);
}

function compareKeys({ shown: { authority }, documents }: World): void {
  const { current } = signingNow(authority);
  same('the issuer of the revocation list', documents.current('crl')?.issuer, current);
  const delegation = documents.current('genesis')?.network_authority as JsonObject;
  same('the key of the genesis block', delegation.public_key, current);
  const { keys = [], successions = [] } = documents.current('authority_keys') ?? {};
  const states = (keys as readonly JsonObject[]).map(({ public_key, state }) => [
    public_key,
    state,
  ]);
  same('the keys', states, [...authority.states]);
  const ids = (successions as readonly JsonObject[]).map(({ succession_id: id }) => id);
  same('the successions', ids, publishedIds(authority));
}

async function compareAgents(world: World): Promise<void> {
  const { shown, lapsedAgents, now } = world;
  for (const agent of shown.agents.values()) if (agent.expiresAt <= now) lapsedAgents.add(agent);
  const registered = [...shown.agents.values()].filter(
    (agent) => agent.isRegistered && !lapsedAgents.has(agent),
  );
  const { count } = await read(world, 'countAgents', null);
  same('the count of agents', count, registered.length);
}

/** Everything that can be read. */
export async function compareAll(world: World): Promise<void> {
  const { shown } = world;
  await compareDocuments(world);
  await compareAgentLists(world);
  await compareAttestations(world);
  await compareTreaties(world);
  await compareImports(world);
  const policy = await world.ask('readRecognitionPolicy', {});
  const local = policy.ok ? (policy.value as JsonObject).local_sovereign_id : null;
  same('the recognition policy', local, shown.recognitionPolicy);
  const counts = await read(world, 'readCounts', null);
  same('the count of certificates', counts.issued_certificates, shown.issued);
  same('the count of revoked certificates', counts.revoked_certificates, shown.revoked.size);
  same('the sequence of the list', counts.crl_sequence, publicationOf(shown, 'crl').sequence);
  same('the count of policies', counts.policy_versions, shown.policies.size);
  compareAudit(world);
}

async function compareAgentLists(world: World): Promise<void> {
  const { shown, lapsedAgents } = world;
  for (const capability of ['tool:0', 'tool:1']) {
    const agents = await readList(world, 'listAgents', { capability });
    const keys = agents.map(({ node_public_key }) => node_public_key);
    const wanted = [...shown.agents]
      .filter(
        ([, agent]) =>
          agent.isRegistered && agent.capability === capability && !lapsedAgents.has(agent),
      )
      .map(([key]) => key);
    same(`the agents with ${capability}`, new Set(keys), new Set(wanted));
  }
  for (const { publicKey } of NODES) {
    const reply = await world.ask('readAgent', { node_public_key: publicKey });
    const agent = shown.agents.get(publicKey);
    const isShown = agent?.isRegistered === true && !lapsedAgents.has(agent);
    same('whether the agent is found', reply.ok, isShown);
  }
}

async function compareAttestations(world: World): Promise<void> {
  const { shown } = world;
  const all = { issuer_sovereign_id: null, subject_id: null, status: null };
  const attestations = await readList(world, 'listAttestations', all);
  const rows = attestations.map(({ attestation, status, revocation_reason }) => [
    (attestation as JsonObject).attestation_id,
    [status, revocation_reason],
  ]);
  const wanted = [...shown.attestations].map(([id, { reason }]) => [
    id,
    [reason === null ? 'active' : 'revoked', reason],
  ]);
  same('the attestations', asMap(rows), asMap(wanted));
  for (const [id, { issuer, reason }] of shown.attestations) {
    const question = { attestation: { id, issuer }, treaty: null };
    const { attestation_revoked_here } = await read(world, 'askRevocations', question);
    same(`whether ${id} is revoked`, attestation_revoked_here, reason !== null);
  }
}

async function compareTreaties(world: World): Promise<void> {
  const { shown } = world;
  const all = { issuer_sovereign_id: null, subject_sovereign_id: null, status: null };
  const treaties = await readList(world, 'listTreaties', all);
  const rows = treaties.map(({ treaty, status, revoked_at, revocation_reason }) => [
    (treaty as JsonObject).treaty_id,
    [status, revoked_at === null ? null : Date.parse(String(revoked_at)), revocation_reason],
  ]);
  const wanted = [...shown.treaties].map(([id, { revokedAt, reason }]) => [
    id,
    [revokedAt === null ? 'active' : 'revoked', revokedAt, reason],
  ]);
  same('the treaties', asMap(rows), asMap(wanted));
}

async function compareImports(world: World): Promise<void> {
  for (const issuer of ['beta', 'gamma']) {
    for (let i = 0; i < 8; i += 1) {
      const id = `foreign-${i}`;
      const question = { attestation: { id, issuer }, treaty: null };
      const { attestation_revoked_by_feed } = await read(world, 'askRevocations', question);
      const isRevoked = world.shown.importedIds.has(`${issuer} ${id}`);
      same(`whether a feed revoked ${issuer} ${id}`, attestation_revoked_by_feed, isRevoked);
    }
  }
}

/** Every answered success left its entry, and nothing else did. */
function compareAudit({ shown, process: { disk } }: World): void {
  const counted = new Map<string, number>();
  for (const { event_type } of disk.audit) {
    counted.set(event_type, (counted.get(event_type) ?? 0) + 1);
  }
  for (const [event, count] of shown.audited) {
    same(`the audit entries of ${event}`, counted.get(event), count);
  }
}

/** The roster as an operator reads it. */
export async function compareRoster(world: World, opened: unknown): Promise<void> {
  const { shown } = world;
  const { roster, count } = opened as { readonly roster: number; readonly count: number };
  const rows = (await read(world, 'readRoster', roster)) ?? {};
  await world.ask('closeRoster', roster);
  same('the count of the roster', Object.keys(rows).length, count);
  for (const [id, row] of Object.entries(rows)) {
    const certificate = shown.certificates.get(id);
    const isActive = certificate?.revocation === null && world.contacts.mayBeActive(id, world.now);
    insist(isActive, () => `the roster shows ${id}, which is not active`);
    same(`the key of ${id}`, (row as JsonObject).node_public_key, certificate?.nodeKey);
  }
}

export function comparePolicies(world: World, history: unknown): void {
  const { shown } = world;
  const page = history as { readonly rows: readonly JsonObject[] };
  const rows = page.rows.map(({ policy_id, active }) => [policy_id, active]);
  const wanted = [...shown.policies.keys()].map((id) => [id, id === shown.activePolicy]);
  same('the policies', asMap(rows), asMap(wanted));
}

type ListName = 'listAgents' | 'listAttestations' | 'listTreaties';

/** A whole list, a few rows at a time. */
async function readList<Name extends ListName>(
  world: World,
  name: Name,
  filter: Omit<CallOf<Name>, keyof PageRequest>,
): Promise<readonly JsonObject[]> {
  const rows: JsonObject[] = [];
  let after: ListPlace | null = null;
  do {
    const given = { ...filter, after, limit: ROWS_PER_PAGE } as unknown as CallOf<Name>;
    const page = await read(world, name, given);
    rows.push(...(page.rows as readonly JsonObject[]));
    const next = page.next as readonly [number, string] | null;
    after = next === null ? null : { at: next[0], id: next[1] };
  } while (after !== null);
  return rows;
}

async function read<Name extends CallName>(
  world: World,
  name: Name,
  given: CallOf<Name>,
): Promise<JsonObject> {
  const reply = await world.ask(name, given);
  insist(reply.ok, () => `${name} is refused`);
  return reply.value as JsonObject;
}

function crlAsRead(crl: JsonObject | null): unknown {
  const entries = (crl?.revoked_certificates ?? []) as readonly JsonObject[];
  return {
    sequence: crl?.sequence,
    entries: entries.map(({ certificate_id, reason }) => [certificate_id, reason]),
  };
}

function crlOf(state: State): unknown {
  const entries = [...state.revoked].map((id) => [
    id,
    state.certificates.get(id)?.revocation?.reason,
  ]);
  return { sequence: publicationOf(state, 'crl').sequence, entries };
}

function feedAsRead(feed: JsonObject | null): unknown {
  const { sequence, revoked_attestation_ids: ids, revocation_reasons } = feed ?? {};
  return { sequence, ids: new Set(ids as readonly string[]), reasons: revocation_reasons };
}

function feedOf(state: State, issuer: string): unknown {
  const revoked = [...state.attestations].filter(
    ([, one]) => one.issuer === issuer && one.reason !== null,
  );
  return {
    sequence: publicationOf(state, issuer).sequence,
    ids: new Set(revoked.map(([id]) => id)),
    reasons: Object.fromEntries(revoked.map(([id, { reason }]) => [id, reason])),
  };
}

function asMap(rows: readonly (readonly unknown[])[]): Map<unknown, unknown> {
  return new Map(rows.map(([id, row]) => [id, row]));
}

function same(what: string, found: unknown, wanted: unknown): void {
  insist(
    isDeepStrictEqual(found, wanted),
    () => `${what}: ${show(found)} instead of ${show(wanted)}`,
  );
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, one) =>
    one instanceof Map || one instanceof Set ? [...one] : one,
  );
}
