/** Requests of operators: what is asked, and the expected outcomes. */
import fc from 'fast-check';
import { SHA256 } from '../../src/base/crypto/digest.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { proveMembership } from '../../src/protocol/records/capability-disclosure.ts';
import { readRecognitionPolicy } from '../../src/protocol/records/recognition.ts';
import { readRevocationFeed } from '../../src/protocol/records/revocation-feed.ts';
import { signRecord, soleSigner } from '../../src/protocol/records/signed-record.ts';
import {
  anyOf,
  HOUR,
  MINUTE,
  pick,
  privileged,
  reading,
  small,
  standard,
  weighted,
} from './kinds.ts';
import {
  activate,
  cancel,
  finish,
  type OfferFlaw,
  rollBack,
  stage,
} from './model/authority-keys.ts';
import {
  createInvite,
  publishPolicy,
  revokeCertificate,
  revokeOperatorKey,
  rollBackPolicy,
} from './model/enrollment.ts';
import {
  importFeed,
  issueAttestation,
  issueTreaty,
  nullify,
  revokeAttestation,
  revokeTreaty,
  setRecognitionPolicy,
} from './model/recognition.ts';
import { stored } from './model/state.ts';
import { AUTHORITY, NETWORK, NEXT_KEYS, NODES, OPERATORS, PEERS, ROOT } from './requests.ts';
import { type MadeSuccession, madeSuccession } from './successions.ts';
import { comparePolicies, compareRoster } from './views.ts';
import type { World } from './world.ts';

const policy = fc.nat({ max: 2 });
const peer = fc.nat({ max: 1 });

export const INVITE_STEPS = {
  invite: standard(
    5,
    'createInvites',
    { hours: anyOf(1, 3, 24), bound: anyOf(-1, -1, 0, 1) },
    ({ hours, bound }, { known }) => {
      const roles = [`role:${hours}`];
      const recipient = NODES[bound]?.publicKey ?? null;
      return {
        given: {
          roles,
          max_validity_hours: hours,
          token_expiry_hours: hours,
          recipient_public_key: recipient,
          count: null,
          batch: null,
          name: null,
          labels: null,
        },
        decide: (moment) => createInvite(moment, { roles, hours, recipient }),
        learn({ token_id: token }: { readonly token_id: string }, made) {
          known.invites.push({ token, id: made('invite')[0] ?? '', isUsed: false });
        },
      };
    },
  ),
};

export const REVOCATION_STEPS = {
  revoke: privileged(
    5,
    'revokeCertificate',
    { certificate: small, compromised: fc.boolean() },
    ({ certificate, compromised }, { known }) => {
      const certId = pick(known.certificates, certificate)?.id ?? 'unknown';
      const reason: 'key_compromise' | 'unspecified' = compromised
        ? 'key_compromise'
        : 'unspecified';
      return {
        given: { cert_id: certId, node_public_key: null, reason },
        decide: (moment) => revokeCertificate(moment, certId, reason),
      };
    },
  ),
  revokeKey: privileged(1, 'revokeOperatorKey', { target: fc.nat({ max: 3 }) }, ({ target }) => {
    const keyId = OPERATORS[target]?.keyId ?? 'stranger';
    return {
      given: { key_id: keyId, reason: 'unspecified', unless_last_privileged: false },
      decide: (moment) => revokeOperatorKey(moment, keyId),
    };
  }),
  publishPolicy: privileged(2, 'publishPolicy', { policy }, (step) => {
    const policyId = `policy-${step.policy}`;
    return {
      given: { policy_id: policyId },
      decide: (moment) => publishPolicy(moment, policyId),
    };
  }),
  rollBackPolicy: privileged(2, 'rollBackPolicy', { policy }, (step) => {
    const policyId = `policy-${step.policy}`;
    return {
      given: { policy_id: policyId },
      decide: (moment) => rollBackPolicy(moment, policyId),
    };
  }),
};

export const RECOGNITION_STEPS = {
  attest: privileged(
    3,
    'issueAttestation',
    { issuer: anyOf('own', 'own', 'foreign'), subject: small },
    (step, { known }) => {
      const issuer = step.issuer === 'own' ? NETWORK : 'elsewhere';
      const subjectId = `subject-${step.subject}`;
      return {
        given: {
          subject_id: subjectId,
          roles: ['role:member'],
          validity_hours: 24,
          subject_public_key: null,
          claims: {},
          issuer_sovereign_id: issuer,
        },
        decide: () => issueAttestation(issuer, subjectId),
        learn: (_, made) => known.attestations.push(...made('attestation')),
      };
    },
  ),
  revokeAttestation: privileged(
    3,
    'revokeAttestation',
    { attestation: small },
    ({ attestation }, { known }) => {
      const attestationId = pick(known.attestations, attestation) ?? 'unknown';
      const reason = `reason ${attestation}`;
      return {
        given: { attestation_id: attestationId, reason },
        decide: (moment) => revokeAttestation(moment, attestationId, reason),
      };
    },
  ),
  treaty: privileged(2, 'issueTreaty', { peer, hours: anyOf(1, 48) }, (step, { known }) => {
    const { name, key } = peerAt(step.peer);
    return {
      given: {
        subject_sovereign_id: name,
        subject_public_keys: [key.publicKey],
        scope: {},
        validity_hours: step.hours,
        metadata: {},
        issuer_sovereign_id: null,
        endpoint: null,
      },
      decide: (moment) => issueTreaty(moment, name, key.publicKey, step.hours),
      learn: (_, made) => known.treaties.push(...made('recognition-treaty')),
    };
  }),
  revokeTreaty: privileged(
    2,
    'revokeTreaty',
    { treaty: small, reason: fc.nat({ max: 1 }) },
    (step, { known }) => {
      const treatyId = pick(known.treaties, step.treaty) ?? 'unknown';
      const reason = `reason ${step.reason}`;
      return {
        given: { treaty_id: treatyId, reason },
        decide: (moment) => revokeTreaty(moment, treatyId, reason),
      };
    },
  ),
  recognize: privileged(1, 'setRecognitionPolicy', { policy: fc.nat({ max: 1 }) }, (step) => {
    const local = `${NETWORK}-${step.policy}`;
    const policy = readRecognitionPolicy({ local_sovereign_id: local });
    if (policy === null) throw new Error('A policy without issuers is one');
    return {
      given: { recognition_policy: policy, policy_id: null },
      decide: () => setRecognitionPolicy(local),
    };
  }),
  importFeed: privileged(
    4,
    'importFeed',
    {
      peer,
      sequence: fc.nat({ max: 5 }),
      ids: fc.array(small, { maxLength: 3 }),
      keys: anyOf('given', 'given', 'treaty', 'treaty', 'wrong'),
      isSigned: weighted([9, true], [1, false]),
    },
    (step, { now }) => {
      const { name: issuer, key } = peerAt(step.peer);
      const { sequence } = step;
      const ids = step.ids.map((id) => `foreign-${id}`);
      const record = readRevocationFeed({
        feed_id: 'feed',
        issuer_sovereign_id: issuer,
        sequence,
        issued_at: formatInstant(now),
        revoked_attestation_ids: ids,
        revocation_reasons: {},
        issued_by: key.publicKey,
        signatures: [],
      });
      if (record === null) throw new Error('The feed is not one');
      const feed = step.isSigned ? signRecord(record, soleSigner(key)) : record;
      const { publicKey } = step.keys === 'wrong' ? peerAt(1 - step.peer).key : key;
      const givenKey = step.keys === 'treaty' ? null : publicKey;
      const signedBy = step.isSigned ? key.publicKey : null;
      return {
        given: {
          feedId: feed.feed_id,
          issuer,
          sequence: feed.sequence,
          revokedCount: ids.length,
          rows: [JSON.stringify(feed.revoked_attestation_ids.map((id) => [id, null]))],
          isSigned: step.isSigned,
          verifiedUnder: signedBy,
          issuer_public_keys: givenKey === null ? null : [givenKey],
          expected_issuer_sovereign_id: null,
        },
        decide: (moment) => importFeed(moment, { issuer, sequence, ids, signedBy, givenKey }),
      };
    },
  ),
  nullify: standard(2, 'nullifyProof', { proof: fc.nat({ max: 2 }) }, (step, { now }) => {
    const proofId = `proof-${step.proof}`;
    const capability = 'read';
    const disclosure = { commitmentId: 'c', capability, capabilities: [capability] };
    const proof = proveMembership({ ...disclosure, prover: 'beta' }, proofId, now, SHA256);
    if (proof === null) throw new Error('The proof cannot be made');
    return { given: { proof }, decide: (moment) => nullify(moment, proofId) };
  }),
  license: standard(1, 'createLicensePolicy', { policy }, (step, world) => {
    const licensee = `licensee-${step.policy}`;
    return {
      given: {
        licensee_sovereign_id: licensee,
        allowed_source_ids: [],
        allowed_access_types: [],
        max_volume_bytes_per_session: null,
        prohibited_classification_tags: [],
        valid_from: formatInstant(world.now),
        valid_until: formatInstant(world.now + 1),
      },
      decide: () =>
        stored(
          'data_license_policy_created',
          () => undefined,
          () => ({ licensee_sovereign_id: licensee }),
        ),
      learn() {
        world.license = licensee;
      },
    };
  }),
  readRoster: reading('openRoster', null, compareRoster),
  // No history has more than one page of policies.
  readPolicies: reading('readPolicyHistory', { after: null, limit: 100 }, comparePolicies),
};

/** Replacements of the authority's key. Most succeed, so that there are many keys. */
export const SUCCESSION_STEPS = {
  stage: privileged(
    3,
    'stageSuccession',
    {
      /** Which earlier succession to send again; a new one if negative. */
      again: fc.oneof({ weight: 6, arbitrary: anyOf(-1) }, { weight: 1, arbitrary: fc.nat(3) }),
      kind: fc.constantFrom('planned', 'planned', 'compromise'),
      key: weighted<'new' | 'first' | 'root' | 'operator' | 'node'>(
        [12, 'new'],
        [1, 'first', 'root', 'operator', 'node'],
      ),
      /** Whether the authority has the private key. */
      hasKey: weighted([5, true], [1, false]),
      activatesIn: anyOf(0, 0, 0, 0, 4 * MINUTE, 2 * HOUR, 13 * HOUR, -2 * HOUR),
      overlap: anyOf(0, MINUTE, HOUR, HOUR, 12 * HOUR, 30 * HOUR),
      altered: weighted<OfferFlaw>(
        [14, 'none'],
        [1, 'number', 'link', 'network', 'root', 'no_root'],
        [1, 'proof', 'from', 'times', 'no_way_back'],
      ),
    },
    (step, world) => {
      const earlier = step.again < 0 ? undefined : pick(world.known.successions, step.again);
      const { signed, offer } = earlier ?? prepared(step, world);
      return { given: { succession: signed }, decide: (moment) => stage(moment, offer) };
    },
  ),
  activate: privileged(3, 'activateSuccession', {}, () => ({
    given: {},
    decide: activate,
  })),
  cancel: privileged(1, 'cancelSuccession', {}, () => ({ given: {}, decide: cancel })),
  rollBack: privileged(1, 'rollBackAuthorityKey', {}, () => ({
    given: {},
    decide: rollBack,
  })),
  finish: privileged(
    2,
    'finishSuccession',
    { despite: anyOf<number | 'reported'>(0, 'reported', 'reported', 1) },
    (step, { known }) => {
      const despite = step.despite === 'reported' ? known.laggards : step.despite;
      return {
        given: { despite },
        decide: (moment) => finish(moment, despite),
        refused({ count }) {
          if (typeof count === 'number') known.laggards = count;
        },
      };
    },
  ),
};

function peerAt(index: number) {
  const found = PEERS[index] ?? PEERS[0];
  if (found === undefined) throw new Error('There are no peers');
  return found;
}

interface Draft {
  readonly kind: 'planned' | 'compromise';
  readonly key: 'new' | 'first' | 'root' | 'operator' | 'node';
  readonly hasKey: boolean;
  readonly activatesIn: number;
  readonly overlap: number;
  readonly altered: OfferFlaw;
}

/** A new succession based on what is published; its key is put in place unless the step says otherwise. */
function prepared({ key, hasKey, altered, ...draft }: Draft, world: World): MadeSuccession {
  const { documents, now, known, runtime } = world;
  const to = nextKeyOf(key, world);
  const published = {
    genesis: documents.current('genesis'),
    document: documents.current('authority_keys'),
  };
  const ground = { ...published, now, uuid: runtime.uuid };
  const made = madeSuccession(ground, { ...draft, to, flaw: altered });
  if (hasKey) world.process.folder.put(to);
  // A node's key becomes free again once its certificates are forgotten.
  if (key !== 'node') known.successions.push(made);
  return made;
}

function nextKeyOf(key: Draft['key'], { known, decided }: World): Signer {
  const nodes = [...decided.certificates.values()].map(({ nodeKey }) => nodeKey);
  switch (key) {
    case 'new':
      return NEXT_KEYS[known.successions.length % NEXT_KEYS.length] ?? AUTHORITY;
    case 'root':
      return ROOT;
    case 'operator':
      return OPERATORS[0]?.key ?? ROOT;
    case 'node':
      return NODES.find(({ publicKey }) => nodes.includes(publicKey)) ?? ROOT;
    case 'first':
      return AUTHORITY;
  }
}
