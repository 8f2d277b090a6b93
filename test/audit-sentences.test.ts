/** What the command line and the console say of each type of entry of the audit log. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { nodeNames } from '../src/client/nodes.ts';
import {
  type AuditSaid,
  areOneRequest,
  createEntryNames,
  sentenceOf,
} from '../src/protocol/audit-sentence.ts';
import { AUDIT_EVENTS, type AuditEvent } from '../src/protocol/rows/audit-event.ts';
import type { CertificateRow } from '../src/protocol/rows/certificate.ts';
import { PROJECT_PATH } from './support/project.ts';

const ADDRESS = { remote_addr: '192.0.2.7' };
const NODE = { node_public_key: 'KEY-OF-WEB-20' };
const CERTIFICATE = { cert_id: 'CERT-OF-WEB-20', ...ADDRESS };
const TREATY = { treaty_id: 'TREATY-WITH-BETA' };
const SUCCESSION = {
  succession_id: 's',
  sequence: 1,
  kind: 'planned',
  from_key: 'OLD',
  to_key: 'NEW',
  activates_at: '2026-12-01T00:00:00Z',
  ...ADDRESS,
};

/** The details as the contract has them, whether an operator did it, and the sentence. */
const SAID: Readonly<Record<AuditEvent, readonly [JsonObject, 'ops' | null, string]>> = {
  invite_created: [
    { token_fingerprint: 'f1', roles: ['role:client', 'role:relay'], name: 'db-1', ...ADDRESS },
    'ops',
    'ops invited db-1 (f1) as role:client, role:relay',
  ],
  invite_withdrawn: [
    { token_fingerprint: 'INVITE-OF-WEB-20', ...ADDRESS },
    'ops',
    'ops withdrew the invite of web-20 (INVITE-O)',
  ],
  certificate_issued: [
    { cert_id: 'c', node_public_key: 'k', invite_token_fingerprint: 'f', roles: ['role:client'] },
    null,
    'node k joined as role:client',
  ],
  certificate_renewed: [
    { old_cert_id: 'CERT-OF-WEB-20', new_cert_id: 'CERT-2', ...NODE },
    null,
    'web-20 (KEY-OF-W) renewed its certificate',
  ],
  certificate_revoked: [
    { ...CERTIFICATE, reason: 'superseded', crl_sequence: 2 },
    'ops',
    'ops revoked web-20 (CERT-OF-): superseded',
  ],
  node_key_compromised: [
    { ...CERTIFICATE, ...NODE },
    'ops',
    'ops reported the key of web-20 (KEY-OF-W) as compromised',
  ],
  node_described: [
    { ...NODE, name: 'web-21', labels: { env: 'prod', rack: 'r3' }, ...ADDRESS },
    'ops',
    'ops renamed web-20 (KEY-OF-W) web-21; labels env=prod rack=r3',
  ],
  join_rejected: [
    { ...NODE, reason: 'node_key_compromised', invite_token_fingerprint: 'f', ...ADDRESS },
    null,
    'web-20 (KEY-OF-W) was not let in: node_key_compromised, from 192.0.2.7',
  ],
  heartbeat_rejected: [
    { ...CERTIFICATE, reason: 'superseded' },
    null,
    'a heartbeat of web-20 (CERT-OF-) was refused: its certificate is revoked (superseded), from 192.0.2.7',
  ],
  renewal_rejected: [
    { ...CERTIFICATE, reason: 'certificate_expired' },
    null,
    'a renewal by web-20 (CERT-OF-) was refused: certificate_expired, from 192.0.2.7',
  ],
  node_auth_failed: [
    { scope: 'join:KEY', reason: 'invalid_signature', ...ADDRESS },
    null,
    'a request as join:KEY was refused: invalid_signature, from 192.0.2.7',
  ],
  admin_auth_failed: [
    { key_id: 'eve', scope: '/admin/revoke', reason: 'unknown_key', ...ADDRESS },
    null,
    'a request for /admin/revoke as eve was refused: unknown_key, from 192.0.2.7',
  ],
  refusals_summarized: [
    { event: 'node_auth_failed', reason: 'invalid_signature', count: 7, ...ADDRESS },
    null,
    '7 more of node_auth_failed: invalid_signature, from 192.0.2.7',
  ],
  admin_authz_denied: [
    {
      key_id: 'ops-2',
      scope: '/admin/policy',
      holder_tier: 'standard',
      required_tier: 'privileged',
      reason: 'insufficient_operator_tier',
      ...ADDRESS,
    },
    null,
    'ops-2 was refused /admin/policy: it needs privileged, and the key is standard, from 192.0.2.7',
  ],
  operator_key_added: [
    { key_id: 'ops-2', public_key: 'k', tier: 'standard', ...ADDRESS },
    'ops',
    'ops added the operator key ops-2, standard',
  ],
  operator_key_tier_set: [
    { key_id: 'ops-2', tier: 'privileged', ...ADDRESS },
    'ops',
    'ops made the operator key ops-2 privileged',
  ],
  operator_key_revoked: [
    { key_id: 'ops-2', reason: 'left', restored_from: 'b' },
    null,
    'the restore revoked the operator key ops-2: left',
  ],
  authority_succession_staged: [
    SUCCESSION,
    'ops',
    'ops staged the authority key NEW, in force from 2026-12-01T00:00:00Z',
  ],
  authority_succession_canceled: [SUCCESSION, 'ops', 'ops withdrew the staged authority key NEW'],
  authority_key_activated: [
    SUCCESSION,
    null,
    'the authority put the authority key NEW in force, after OLD',
  ],
  authority_key_rolled_back: [
    SUCCESSION,
    'ops',
    'ops went back to the authority key OLD, from NEW',
  ],
  authority_key_retired: [
    { public_key: 'OLD', despite: 3, ...ADDRESS },
    'ops',
    'ops ended the use of the previous authority key OLD',
  ],
  policy_published: [{ policy_id: 'p-2', ...ADDRESS }, 'ops', 'ops published the policy p-2'],
  policy_rolled_back: [{ policy_id: 'p-1', ...ADDRESS }, 'ops', 'ops went back to the policy p-1'],
  agent_registered: [
    { agent_id: 'helper', ...NODE, ...ADDRESS },
    null,
    'web-20 (KEY-OF-W) registered its agent helper',
  ],
  agent_deregistered: [{ ...NODE, ...ADDRESS }, null, 'web-20 (KEY-OF-W) removed its agent'],
  membership_attestation_issued: [
    { attestation_id: 'a', issuer_sovereign_id: 'alpha', subject_id: 'mia', roles: ['role:x'] },
    'ops',
    'ops attested role:x to mia, attestation a',
  ],
  membership_attestation_revoked: [
    { attestation_id: 'ATTESTATION-OF-MIA', reason: 'left' },
    'ops',
    'ops revoked the attestation of mia (ATTESTAT): left',
  ],
  recognition_policy_saved: [
    { policy_id: 'r', local_sovereign_id: 'alpha', recognized_issuer_count: 2 },
    'ops',
    'ops set the recognition policy r, which recognizes 2 issuers',
  ],
  recognition_treaty_issued: [
    {
      treaty_id: 't',
      issuer_sovereign_id: 'alpha',
      subject_sovereign_id: 'gamma',
      allowed_roles: [],
    },
    'ops',
    'ops recognized gamma, for any role, by treaty t',
  ],
  recognition_treaty_revoked: [
    { ...TREATY, reason: 'over' },
    'ops',
    'ops revoked the treaty with beta (TREATY-W): over',
  ],
  recognition_treaty_followed: [
    { ...TREATY, successor_treaty_id: 't2', subject_sovereign_id: 'beta', sequence: 1 },
    null,
    'the authority replaced the treaty with beta (TREATY-W), because beta has changed its keys',
  ],
  recognition_treaty_endpoint_set: [
    { ...TREATY, endpoint: null },
    'ops',
    'ops set the address of the treaty with beta (TREATY-W) to none',
  ],
  sovereign_revocation_feed_imported: [
    { feed_id: 'f', issuer_sovereign_id: 'beta', sequence: 4, revoked_count: 9 },
    null,
    'the authority imported feed 4 of beta, which revokes 9 attestations',
  ],
  sovereign_revocation_feed_rejected: [
    { feed_id: 'f', issuer_sovereign_id: 'beta', sequence: 3, reason: 'stale_sequence' },
    'ops',
    'ops sent feed 3 of beta, which was refused: stale_sequence',
  ],
  capability_offer_built: [
    {
      offer_id: 'o',
      offerer_sovereign_id: 'alpha',
      responder_sovereign_id: 'beta',
      capabilities: ['read'],
    },
    'ops',
    'ops offered beta read, offer o',
  ],
  capability_counter_built: [
    {
      original_offer_id: 'o',
      counter_offer_id: 'o2',
      offerer_sovereign_id: 'alpha',
      capabilities: ['read', 'list'],
    },
    'ops',
    'ops answered the offer o with read, list, counter o2',
  ],
  agreement_accepted: [
    { agreement_id: 'g', offerer_sovereign_id: 'beta', responder_sovereign_id: 'alpha' },
    'ops',
    'ops accepted the agreement g of beta with alpha',
  ],
  boundary_decision_made: [
    {
      decision_id: 'd',
      context_id: 'x',
      agreement_id: 'g',
      requested_capability: 'read',
      authorized: false,
    },
    'ops',
    'ops denied read within agreement g',
  ],
  trust_evidence_built: [
    {
      evidence_id: 'e',
      source_sovereign_id: 'alpha',
      target_sovereign_id: 'beta',
      verdict: 'trusted',
    },
    'ops',
    'ops signed evidence e of alpha about beta: trusted',
  ],
  capability_commitment_created: [
    { commitment_id: 'm', agreement_id: 'g', capability_count: 2 },
    'ops',
    'ops committed to 2 capabilities of agreement g',
  ],
  capability_nullifier_issued: [
    { nullifier_id: 'n', proof_id: 'p', commitment_id: 'm' },
    'ops',
    'ops used up the proof p, nullifier n',
  ],
  validator_vote_cast: [
    { vote_id: 'v', proof_id: 'p', decision_id: 'd', vote: 'approve' },
    'ops',
    'ops voted approve on decision d',
  ],
  consensus_proof_assembled: [
    { consensus_id: 'x', proof_id: 'p', vote_count: 3, required_threshold: 2 },
    'ops',
    'ops assembled the consensus x with 3 votes, of which 2 were needed',
  ],
  data_license_policy_created: [
    {
      policy_id: 'l',
      licensor_sovereign_id: 'alpha',
      licensee_sovereign_id: 'beta',
      allowed_access_types: ['read'],
    },
    'ops',
    'ops licensed beta to read, policy l',
  ],
  data_access_intent_created: [
    {
      intent_id: 'i',
      agent_sovereign_id: 'beta',
      decision_id: 'd',
      declared_access_types: ['read'],
      source_count: 4,
    },
    'ops',
    'ops declared to read from 4 sources, intent i',
  ],
  trust_cycle_completed: [
    { result: 'failed', failed_step: 'verify', steps: 3, duration_ms: 2, digest: 'd' },
    null,
    'the authority checked that its trust rules hold: failed at verify',
  ],
  state_restored: [
    { restored_from: 'b', epoch: 1, revision: 44, replayed: 0, removed_invites: 0 },
    null,
    'the state of backup b was restored, revision 44',
  ],
  store_moved: [
    { from: 'lmdb', to: 'postgresql', revision: 44 },
    null,
    'the state moved from lmdb to postgresql',
  ],
};

function entry(type: string, details: JsonObject, actor: string | null): AuditSaid {
  const by = actor === null ? {} : { actor_key_id: actor };
  return { created_at: '2026-11-01T00:00:00Z', event_type: type, details, ...by };
}

const EARLIER = [
  entry('invite_created', { token_fingerprint: 'INVITE-OF-WEB-20', name: 'web-20' }, 'ops'),
  entry('certificate_issued', { cert_id: 'CERT-OF-WEB-20', ...NODE, name: 'web-20' }, null),
  entry('recognition_treaty_issued', { ...TREATY, subject_sovereign_id: 'beta' }, 'ops'),
  entry(
    'membership_attestation_issued',
    { attestation_id: 'ATTESTATION-OF-MIA', subject_id: 'mia' },
    'ops',
  ),
];

/** The sentence about the last of the entries. */
function sentencesOf(...entries: readonly AuditSaid[]): string {
  const named = createEntryNames();
  const last = entries.map(named).at(-1);
  assert.ok(last !== undefined);
  const nameOf = (id: string) => last.names.get(id);
  return sentenceOf(last.entry, { nameOf, short: (id) => id.slice(0, 8) });
}

test('each type is described with what it is about, and without details, as an earlier version may have logged it', () => {
  for (const type of AUDIT_EVENTS) {
    const [details, actor, sentence] = SAID[type];
    assert.equal(sentencesOf(...EARLIER, entry(type, details, actor)), sentence, type);
    assert.match(sentencesOf(entry(type, {}, actor)), /^(?!.*undefined).{10,}$/, type);
  }
});

test('each type is tested with members that the contract has', () => {
  for (const type of AUDIT_EVENTS) {
    const row = CONTRACT.find((line) => line.split('|')[1]?.includes(`\`${type}\``));
    assert.ok(row !== undefined, type);
    const members = row.includes('the same') ? Object.keys(SUCCESSION) : namesIn(row);
    const others = Object.keys(SAID[type][0]).filter((member) => !members.includes(member));
    assert.deepEqual(others, [], type);
  }
});

const CONTRACT = readFileSync(join(PROJECT_PATH, 'docs/wire/service.md'), 'utf8').split('\n');

function namesIn(row: string): string[] {
  return [...row.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
}

test('a name is that of the time of the entry, and follows the key to its next certificates', () => {
  const named = (name: string | null) =>
    entry('node_described', { ...NODE, name, labels: {} }, 'ops');
  const revoked = (id: string) => entry('certificate_revoked', { cert_id: id, reason: 'x' }, 'ops');
  const renewal = { old_cert_id: 'CERT-OF-WEB-20', new_cert_id: 'NEXT', ...NODE };
  const renewed = entry('certificate_renewed', renewal, null);
  for (const [entries, sentence] of [
    [[renewed, revoked('NEXT')], 'ops revoked web-20 (NEXT): x'],
    [[named('db-1'), revoked('CERT-OF-WEB-20')], 'ops revoked db-1 (CERT-OF-): x'],
    [[named(null), revoked('CERT-OF-WEB-20')], 'ops revoked certificate CERT-OF-: x'],
    [[named(null)], 'ops took the name of web-20 (KEY-OF-W) away; labels none'],
    [[named('web-20')], 'ops set the labels of web-20 (KEY-OF-W): none'],
    [[named(null), named('db-1')], 'ops named node KEY-OF-W db-1; labels none'],
    [[named(null), named(null)], 'ops set the labels of node KEY-OF-W: none'],
  ] as const) {
    assert.equal(sentencesOf(...EARLIER, ...entries), sentence);
  }
});

test('where one page has not the names of all nodes, each node is asked about once', async () => {
  const asked: object[] = [];
  const addNames = nodeNames({
    async listCertificates({ limit: _, ...filter } = {}) {
      asked.push(filter);
      const certificates = filter.key === 'A' ? [{ name: 'web-1' } as CertificateRow] : [];
      return { count: 0, certificates, ...(filter.name && { next_cursor: 'more' }) };
    },
  });
  const entry = (details: JsonObject) =>
    createEntryNames()({ created_at: '', event_type: 'certificate_issued', details });
  const entries = [
    entry({ node_public_key: 'A', cert_id: '1' }),
    entry({ node_public_key: 'A', cert_id: '2' }),
    entry({ cert_id: '3' }),
  ];
  await addNames(entries);
  assert.deepEqual(asked, [{ name: '*' }, { key: 'A' }, { cert_id: '3' }]);
  assert.deepEqual(
    entries.map(({ names }) => [...names]),
    [
      [
        ['A', 'web-1'],
        ['1', 'web-1'],
      ],
      [
        ['A', 'web-1'],
        ['2', 'web-1'],
      ],
      [],
    ],
  );
});

test('invites of one request are one sentence', () => {
  const words = { nameOf: (id: string) => `web-${id}`, short: (id: string) => id };
  const invite = (id: string, roles = ['role:client']) =>
    entry('invite_created', { token_fingerprint: id, roles, name: `web-${id}` }, 'ops');
  const [first, second, third] = [invite('01'), invite('02'), invite('03')];
  assert.equal(
    sentenceOf(first, words, [second, third]),
    'ops invited web-01 … web-03 (3 invites) as role:client',
  );
  const nameless = entry(
    'invite_created',
    { token_fingerprint: 'f', roles: ['role:client'] },
    'ops',
  );
  assert.equal(sentenceOf(nameless, words), 'ops created the invite f for role:client');
  assert.equal(sentenceOf(nameless, words, [nameless]), 'ops created 2 invites for role:client');
  assert.ok(areOneRequest(first, third));
  assert.ok(!areOneRequest(first, invite('04', ['role:relay'])), 'of other roles');
  assert.ok(!areOneRequest(first, { ...second, created_at: '2026-11-01T00:00:01Z' }), 'later');
  assert.ok(!areOneRequest(first, { ...second, actor_key_id: 'eve' }), 'by somebody else');
});

test('a type that this program does not know is named', () => {
  assert.equal(sentencesOf(entry('node_dreamed', {}, 'ops')), 'ops: node_dreamed');
});
