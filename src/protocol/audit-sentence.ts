/** What an entry of the audit log says to people, as one sentence [core-4-16]. */
import { counted } from '../base/counts.ts';
import { isJsonObject, type JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import { REVOCATION_REASONS } from './records/revocation-list.ts';
import type { AuditEvent } from './rows/audit-event.ts';

export interface AuditSaid {
  readonly created_at: string;
  readonly event_type: string;
  readonly actor_key_id?: string;
  readonly details: JsonObject;
}

interface Words {
  /** What the subject with this id or key is called. */
  nameOf(id: string): string | undefined;
  /** An id or key, as it is shown. */
  short(id: string): string;
}

/** The sentence, without a final period. `others` are further invites of the same request. */
export function sentenceOf(
  entry: AuditSaid,
  words: Words,
  others: readonly AuditSaid[] = [],
): string {
  const sentence = SENTENCES[entry.event_type as AuditEvent] as Sentence | undefined;
  const { details } = entry;
  // A newer authority logs events that this program does not know.
  if (sentence === undefined) return `${byOf(entry)}: ${entry.event_type}`;
  const text = (member: string) => textOf(details[member]);
  const the = (member: string, kind = '', joint?: string) => {
    const id = text(member);
    const name = words.nameOf(id);
    const shown = words.short(id);
    if (name === undefined) return `${kind} ${shown}`.trimStart();
    return `${joint === undefined ? '' : `${kind} ${joint} `}${name} (${shown})`;
  };
  return sentence({
    by: byOf(entry),
    details,
    last: others.at(-1)?.details ?? null,
    count: others.length + 1,
    text,
    many: (member, one, many) => counted(Number(details[member]), one, many),
    id: (member) => words.short(text(member)),
    the,
    name: words.nameOf(text('node_public_key')) ?? null,
    because: details.reason === undefined ? '' : `: ${text('reason')}`,
    from: details.remote_addr === undefined ? '' : `, from ${text('remote_addr')}`,
  });
}

function byOf({ actor_key_id: actor, details }: AuditSaid): string {
  if (actor !== undefined) return actor;
  return details.restored_from === undefined ? 'the authority' : 'the restore';
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  if (Array.isArray(value)) return value.map(textOf).join(', ') || 'none';
  if (!isJsonObject(value)) return String(value);
  const members = Object.entries(value).map(([key, each]) => `${key}=${textOf(each)}`);
  return members.join(' ') || 'none';
}

interface Said {
  /** Who did it: an operator, the authority, or a restore. */
  readonly by: string;
  readonly details: JsonObject;
  /** Of the last invite, if the sentence is about several. */
  readonly last: JsonObject | null;
  readonly count: number;
  /** A member of the details. */
  text(member: string): string;
  /** The number in a member, of these. */
  many(member: string, one: string, many?: string): string;
  /** The id in a member. */
  id(member: string): string;
  /** What has the id in a member: its name and the id, after its kind if there is a `joint`; or its kind and the id. */
  the(member: string, kind?: string, joint?: string): string;
  /** The name of the node with this key, before the entry. */
  readonly name: string | null;
  readonly because: string;
  readonly from: string;
}

type Sentence = (said: Said) => string;

const SENTENCES: Readonly<Record<AuditEvent, Sentence>> = {
  invite_created: invited,
  invite_withdrawn: ({ by, the }) =>
    `${by} withdrew ${the('token_fingerprint', 'the invite', 'of')}`,
  certificate_issued: ({ text, the }) =>
    `${the('node_public_key', 'node')} joined as ${text('roles')}`,
  certificate_renewed: ({ the }) => `${the('node_public_key', 'node')} renewed its certificate`,
  certificate_revoked: ({ by, the, because }) =>
    `${by} revoked ${the('cert_id', 'certificate')}${because}`,
  node_key_compromised: ({ by, the }) =>
    `${by} reported the key of ${the('node_public_key', 'node')} as compromised`,
  node_described: described,
  join_rejected: ({ the, because, from }) =>
    `${the('node_public_key', 'node')} was not let in${because}${from}`,
  heartbeat_rejected: (said) => `a heartbeat of ${refusedNode(said)}`,
  renewal_rejected: (said) => `a renewal by ${refusedNode(said)}`,
  node_auth_failed: ({ text, because, from }) =>
    `a request as ${text('scope')} was refused${because}${from}`,
  admin_auth_failed: ({ text, because, from }) =>
    `a request for ${text('scope')} as ${text('key_id')} was refused${because}${from}`,
  admin_authz_denied: ({ text, from }) =>
    `${text('key_id')} was refused ${text('scope')}: it needs ${text('required_tier')}, and the key is ${text('holder_tier')}${from}`,
  refusals_summarized: ({ text, because, from }) =>
    `${text('count')} more of ${text('event')}${because}${from}`,
  operator_key_added: ({ by, text }) =>
    `${by} added the operator key ${text('key_id')}, ${text('tier')}`,
  operator_key_tier_set: ({ by, text }) =>
    `${by} made the operator key ${text('key_id')} ${text('tier')}`,
  operator_key_revoked: ({ by, text, because }) =>
    `${by} revoked the operator key ${text('key_id')}${because}`,
  authority_succession_staged: ({ by, text, id }) =>
    `${by} staged the authority key ${id('to_key')}, in force from ${text('activates_at')}`,
  authority_succession_canceled: ({ by, id }) =>
    `${by} withdrew the staged authority key ${id('to_key')}`,
  authority_key_activated: ({ by, id }) =>
    `${by} put the authority key ${id('to_key')} in force, after ${id('from_key')}`,
  authority_key_rolled_back: ({ by, id }) =>
    `${by} went back to the authority key ${id('from_key')}, from ${id('to_key')}`,
  authority_key_retired: ({ by, id }) =>
    `${by} ended the use of the previous authority key ${id('public_key')}`,
  policy_published: ({ by, text }) => `${by} published the policy ${text('policy_id')}`,
  policy_rolled_back: ({ by, text }) => `${by} went back to the policy ${text('policy_id')}`,
  agent_registered: ({ text, the }) =>
    `${the('node_public_key', 'node')} registered its agent ${text('agent_id')}`,
  agent_deregistered: ({ the }) => `${the('node_public_key', 'node')} removed its agent`,
  membership_attestation_issued: ({ by, text, id }) =>
    `${by} attested ${text('roles')} to ${text('subject_id')}, attestation ${id('attestation_id')}`,
  membership_attestation_revoked: ({ by, the, because }) =>
    `${by} revoked ${the('attestation_id', 'the attestation', 'of')}${because}`,
  recognition_policy_saved: ({ by, text, many }) =>
    `${by} set the recognition policy ${text('policy_id')}, which recognizes ${many('recognized_issuer_count', 'issuer')}`,
  recognition_treaty_issued: ({ by, text, id }) =>
    `${by} recognized ${text('subject_sovereign_id')}, for ${anyOf(text('allowed_roles'))}, by treaty ${id('treaty_id')}`,
  recognition_treaty_revoked: ({ by, the, because }) =>
    `${by} revoked ${the('treaty_id', 'the treaty', 'with')}${because}`,
  recognition_treaty_followed: ({ by, text, the }) =>
    `${by} replaced ${the('treaty_id', 'the treaty', 'with')}, because ${text('subject_sovereign_id')} has changed its keys`,
  recognition_treaty_endpoint_set: ({ by, text, the }) =>
    `${by} set the address of ${the('treaty_id', 'the treaty', 'with')} to ${text('endpoint')}`,
  sovereign_revocation_feed_imported: ({ by, text, many }) =>
    `${by} imported feed ${text('sequence')} of ${text('issuer_sovereign_id')}, which revokes ${many('revoked_count', 'attestation')}`,
  sovereign_revocation_feed_rejected: ({ by, text, because }) =>
    `${by} sent feed ${text('sequence')} of ${text('issuer_sovereign_id')}, which was refused${because}`,
  capability_offer_built: ({ by, text, id }) =>
    `${by} offered ${text('responder_sovereign_id')} ${text('capabilities')}, offer ${id('offer_id')}`,
  capability_counter_built: ({ by, text, id }) =>
    `${by} answered the offer ${id('original_offer_id')} with ${text('capabilities')}, counter ${id('counter_offer_id')}`,
  agreement_accepted: ({ by, text, id }) =>
    `${by} accepted the agreement ${id('agreement_id')} of ${text('offerer_sovereign_id')} with ${text('responder_sovereign_id')}`,
  boundary_decision_made: ({ by, details, text, id }) =>
    `${by} ${details.authorized === true ? 'authorized' : 'denied'} ${text('requested_capability')} within agreement ${id('agreement_id')}`,
  trust_evidence_built: ({ by, text, id }) =>
    `${by} signed evidence ${id('evidence_id')} of ${text('source_sovereign_id')} about ${text('target_sovereign_id')}: ${text('verdict')}`,
  capability_commitment_created: ({ by, many, id }) =>
    `${by} committed to ${many('capability_count', 'capability', 'capabilities')} of agreement ${id('agreement_id')}`,
  capability_nullifier_issued: ({ by, id }) =>
    `${by} used up the proof ${id('proof_id')}, nullifier ${id('nullifier_id')}`,
  validator_vote_cast: ({ by, text, id }) =>
    `${by} voted ${text('vote')} on decision ${id('decision_id')}`,
  consensus_proof_assembled: ({ by, text, many, id }) =>
    `${by} assembled the consensus ${id('consensus_id')} with ${many('vote_count', 'vote')}, of which ${text('required_threshold')} were needed`,
  data_license_policy_created: ({ by, text }) =>
    `${by} licensed ${text('licensee_sovereign_id')} to ${text('allowed_access_types')}, policy ${text('policy_id')}`,
  data_access_intent_created: ({ by, text, many, id }) =>
    `${by} declared to ${text('declared_access_types')} from ${many('source_count', 'source')}, intent ${id('intent_id')}`,
  trust_cycle_completed: ({ by, details, text }) =>
    `${by} checked that its trust rules hold: ${text('result')}${details.failed_step == null ? '' : ` at ${text('failed_step')}`}`,
  state_restored: ({ text, id }) =>
    `the state of backup ${id('restored_from')} was restored, revision ${text('revision')}`,
  store_moved: ({ text }) => `the state moved from ${text('from')} to ${text('to')}`,
};

function invited({ by, id, text, details, last, count }: Said): string {
  const roles = text('roles');
  if (details.name === undefined) {
    const those = last === null ? `the invite ${id('token_fingerprint')}` : `${count} invites`;
    return `${by} created ${those} for ${roles}`;
  }
  if (last === null) {
    return `${by} invited ${text('name')} (${id('token_fingerprint')}) as ${roles}`;
  }
  return `${by} invited ${text('name')} … ${textOf(last.name)} (${count} invites) as ${roles}`;
}

function described({ by, the, text, name, details }: Said): string {
  const node = the('node_public_key', 'node');
  const labels = `labels ${text('labels')}`;
  if ((details.name ?? null) === name) return `${by} set the labels of ${node}: ${text('labels')}`;
  if (details.name === null) return `${by} took the name of ${node} away; ${labels}`;
  return `${by} ${name === null ? 'named' : 'renamed'} ${node} ${text('name')}; ${labels}`;
}

/** The reason of a revocation must not read as if it were that of the refusal. */
function refusedNode({ the, text, because, from }: Said): string {
  const isRevoked = REVOCATION_REASONS.some((reason) => reason === text('reason'));
  const why = isRevoked ? `: its certificate is revoked (${text('reason')})` : because;
  return `${the('cert_id', 'certificate')} was refused${why}${from}`;
}

/** A treaty without roles is for all of them. */
function anyOf(roles: string): string {
  return roles === 'none' ? 'any role' : roles;
}

/** Whether two entries are invites of one request, which become one sentence. */
export function areOneRequest(a: AuditSaid, b: AuditSaid): boolean {
  const said = ({
    created_at,
    event_type,
    actor_key_id = '',
    details: { roles = null },
  }: AuditSaid) => canonicalJson([created_at, event_type, actor_key_id, roles]);
  return a.event_type === 'invite_created' && said(a) === said(b);
}

/** Rows in the order of the log, with those together that become one sentence. */
export function byRequest<Row extends { readonly entry: AuditSaid }>(
  rows: readonly Row[],
): (readonly [Row, ...Row[]])[] {
  const groups: [Row, ...Row[]][] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    if (last !== undefined && areOneRequest(last[0].entry, row.entry)) last.push(row);
    else groups.push([row]);
  }
  return groups;
}

/** The names of what entries of the audit log are about: most entries have only ids, and earlier ones say the names. */

/** From the ids and keys in an entry to names. */
type NamesIn = Map<string, string>;

export interface NamedEntry<Entry extends AuditSaid = AuditSaid> {
  readonly entry: Entry;
  readonly names: NamesIn;
}

/** Reads entries in their order; each gets the names as they were before it, and its own. */
export function createEntryNames() {
  const names = new Map<string, string>();
  const keys = new Map<string, string>();

  return <Entry extends AuditSaid>(entry: Entry): NamedEntry<Entry> => {
    const { event_type: type, details } = entry;
    const { node_public_key: key } = details;
    if (typeof key === 'string') for (const id of certificatesIn(details)) keys.set(id, key);
    // What a rename is about is called by its earlier name.
    if (type !== 'node_described') learn(entry);
    const known: NamesIn = new Map();
    for (const id of textsIn(details)) {
      const name = names.get(id) ?? names.get(keys.get(id) ?? '');
      if (name !== undefined) known.set(id, name);
    }
    if (type === 'node_described') learn(entry);
    return { entry, names: known };
  };

  function learn({ event_type: type, details }: AuditSaid): void {
    const [named, by] = NAMING[type] ?? [];
    if (named === undefined || by === undefined) return;
    const [id, name] = [details[named], details[by]];
    if (typeof id !== 'string') return;
    if (typeof name === 'string') names.set(id, name);
    else if (name === null) names.delete(id);
  }
}

/** Which events say what something is called: the member with its id, and the one with its name. */
const NAMING: Readonly<Record<string, readonly [id: string, name: string]>> = {
  invite_created: ['token_fingerprint', 'name'],
  certificate_issued: ['node_public_key', 'name'],
  node_described: ['node_public_key', 'name'],
  recognition_treaty_issued: ['treaty_id', 'subject_sovereign_id'],
  recognition_treaty_followed: ['successor_treaty_id', 'subject_sovereign_id'],
  membership_attestation_issued: ['attestation_id', 'subject_id'],
};

function certificatesIn({ cert_id, old_cert_id, new_cert_id }: JsonObject): string[] {
  return [cert_id, old_cert_id, new_cert_id].filter((id) => typeof id === 'string');
}

function textsIn(details: JsonObject): string[] {
  return Object.values(details).filter((value) => typeof value === 'string');
}
