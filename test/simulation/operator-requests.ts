/** Requests of operators: each step becomes a signed request, the resulting call, and the expected outcomes. */
import { SHA256 } from '../../src/base/crypto/digest.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { proveMembership } from '../../src/protocol/records/capability-disclosure.ts';
import { readRecognitionPolicy } from '../../src/protocol/records/recognition.ts';
import { readRevocationFeed } from '../../src/protocol/records/revocation-feed.ts';
import { signRecord, soleSigner } from '../../src/protocol/records/signed-record.ts';
import { type CallInput, callAsOperator, type OperatorCallName } from './authority-calls.ts';
import type { Known } from './known.ts';
import { asOperator } from './model/access.ts';
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
import {
  answered,
  type Made,
  type Moment,
  type Outcome,
  stored,
  type Tier,
} from './model/state.ts';
import { NETWORK, NODES, OPERATORS, PEERS, STRANGER, signAsOperator } from './requests.ts';
import type { Sent } from './sent.ts';
import type { OperatorStep, Request } from './steps.ts';
import type { SUCCESSION_REQUESTS } from './succession-requests.ts';
import type { World } from './world.ts';

type Step<Name extends Request['do']> = Extract<Request, { do: Name }>;
type OperatorRequestName = Exclude<
  Extract<Request, OperatorStep>['do'],
  'readRoster' | 'readPolicies' | keyof typeof SUCCESSION_REQUESTS
>;
interface Asked<Name extends OperatorCallName> {
  readonly name: Name;
  readonly tier: Tier;
  readonly given: CallInput<Name>;
  readonly decide: (moment: Moment) => Outcome | readonly Outcome[];
  readonly learn?: (value: JsonObject, made: Made) => void;
  readonly refused?: (details: JsonObject) => void;
}

type Asks = {
  readonly [Name in OperatorRequestName]: (
    step: Step<Name>,
    known: Known,
    world: World,
  ) => (step: OperatorStep) => Sent;
};

/** Counted from the newest; the oldest if the list is shorter. */
export function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[Math.max(0, list.length - 1 - index)];
}

export const OPERATOR_REQUESTS: Asks = {
  invite(step, known, world) {
    const terms = {
      roles: [`role:${step.hours}`],
      maxValidityHours: step.hours,
      tokenExpiryHours: step.hours,
      recipient: step.bound < 0 ? null : (NODES[step.bound]?.publicKey ?? null),
    };
    return ask(world, {
      name: 'createInvites',
      tier: 'standard',
      given: {
        roles: terms.roles,
        max_validity_hours: terms.maxValidityHours,
        token_expiry_hours: terms.tokenExpiryHours,
        recipient_public_key: terms.recipient,
        count: null,
        batch: null,
        name: null,
        labels: null,
      },
      decide: (moment) => createInvite(moment, terms),
      learn: ({ token_id }, made) =>
        known.invites.push({ token: String(token_id), id: made('invite')[0] ?? '', isUsed: false }),
    });
  },
  revoke(step, known, world) {
    const certId = pick(known.certificates, step.certificate)?.id ?? 'unknown';
    const reason = step.compromised ? 'key_compromise' : 'unspecified';
    return ask(world, {
      name: 'revokeCertificate',
      tier: 'privileged',
      given: { cert_id: certId, node_public_key: null, reason },
      decide: (moment) => revokeCertificate(moment, certId, reason),
    });
  },
  revokeKey(step, _known, world) {
    const { keyId } = OPERATORS[step.target] ?? STRANGER;
    return ask(world, {
      name: 'revokeOperatorKey',
      tier: 'privileged',
      given: { key_id: keyId, reason: 'unspecified', unless_last_privileged: false },
      decide: (moment) => revokeOperatorKey(moment, keyId),
    });
  },
  publishPolicy(step, _known, world) {
    const policyId = `policy-${step.policy}`;
    return ask(world, {
      name: 'publishPolicy',
      tier: 'privileged',
      given: { policy_id: policyId },
      decide: (moment) => publishPolicy(moment, policyId),
    });
  },
  rollBackPolicy(step, _known, world) {
    const policyId = `policy-${step.policy}`;
    return ask(world, {
      name: 'rollBackPolicy',
      tier: 'privileged',
      given: { policy_id: policyId },
      decide: (moment) => rollBackPolicy(moment, policyId),
    });
  },
  attest(step, known, world) {
    const issuer = step.issuer === 'own' ? NETWORK : 'elsewhere';
    const subjectId = `subject-${step.subject}`;
    return ask(world, {
      name: 'issueAttestation',
      tier: 'privileged',
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
    });
  },
  revokeAttestation(step, known, world) {
    const attestationId = pick(known.attestations, step.attestation) ?? 'unknown';
    const reason = `reason ${step.attestation}`;
    return ask(world, {
      name: 'revokeAttestation',
      tier: 'privileged',
      given: { attestation_id: attestationId, reason },
      decide: (moment) => revokeAttestation(moment, attestationId, reason),
    });
  },
  treaty(step, known, world) {
    const peer = PEERS[step.peer] ?? PEERS[0];
    if (peer === undefined) throw new Error('There are no peers');
    return ask(world, {
      name: 'issueTreaty',
      tier: 'privileged',
      given: {
        subject_sovereign_id: peer.name,
        subject_public_keys: [peer.key.publicKey],
        scope: {},
        validity_hours: step.hours,
        metadata: {},
        issuer_sovereign_id: null,
        endpoint: null,
      },
      decide: (moment) => issueTreaty(moment, peer.name, peer.key.publicKey, step.hours),
      learn: (_, made) => known.treaties.push(...made('recognition-treaty')),
    });
  },
  revokeTreaty(step, known, world) {
    const treatyId = pick(known.treaties, step.treaty) ?? 'unknown';
    const reason = `reason ${step.reason}`;
    return ask(world, {
      name: 'revokeTreaty',
      tier: 'privileged',
      given: { treaty_id: treatyId, reason },
      decide: (moment) => revokeTreaty(moment, treatyId, reason),
    });
  },
  recognize(step, _known, world) {
    const local = `${NETWORK}-${step.policy}`;
    const policy = readRecognitionPolicy({ local_sovereign_id: local });
    if (policy === null) throw new Error('A policy without issuers is one');
    return ask(world, {
      name: 'setRecognitionPolicy',
      tier: 'privileged',
      given: { recognition_policy: policy, policy_id: null },
      decide: () => setRecognitionPolicy(local),
    });
  },
  importFeed(step, _known, world) {
    const peer = PEERS[step.peer] ?? PEERS[0];
    const other = PEERS[1 - step.peer] ?? PEERS[0];
    if (peer === undefined || other === undefined) throw new Error('There are no peers');
    const ids = step.ids.map((id) => `foreign-${id}`);
    const record = readRevocationFeed({
      feed_id: 'feed',
      issuer_sovereign_id: peer.name,
      sequence: step.sequence,
      issued_at: formatInstant(world.now),
      revoked_attestation_ids: ids,
      revocation_reasons: {},
      issued_by: peer.key.publicKey,
      signatures: [],
    });
    if (record === null) throw new Error('The feed is not one');
    const feed = step.isSigned ? signRecord(record, soleSigner(peer.key)) : record;
    const { publicKey } = step.keys === 'wrong' ? other.key : peer.key;
    const givenKey = step.keys === 'treaty' ? null : publicKey;
    return ask(world, {
      name: 'importFeed',
      tier: 'privileged',
      given: {
        feedId: feed.feed_id,
        issuer: feed.issuer_sovereign_id,
        sequence: feed.sequence,
        revokedCount: feed.revoked_attestation_ids.length,
        rows: [JSON.stringify(feed.revoked_attestation_ids.map((id) => [id, null]))],
        isSigned: step.isSigned,
        verifiedUnder: step.isSigned ? peer.key.publicKey : null,
        issuer_public_keys: givenKey === null ? null : [givenKey],
        expected_issuer_sovereign_id: null,
      },
      decide: (moment) =>
        importFeed(moment, {
          issuer: peer.name,
          sequence: step.sequence,
          ids,
          signedBy: step.isSigned ? peer.key.publicKey : null,
          givenKey,
        }),
    });
  },
  nullify(step, _known, world) {
    const proofId = `proof-${step.proof}`;
    const capability = 'read';
    const disclosure = {
      commitmentId: 'c',
      capability,
      capabilities: [capability],
      prover: 'beta',
    };
    const proof = proveMembership(disclosure, proofId, world.now, SHA256);
    if (proof === null) throw new Error('The proof cannot be made');
    return ask(world, {
      name: 'nullifyProof',
      tier: 'standard',
      given: { proof },
      decide: (moment) => nullify(moment, proofId),
    });
  },
  license(step, _known, world) {
    const licensee = `licensee-${step.policy}`;
    return ask(world, {
      name: 'createLicensePolicy',
      tier: 'standard',
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
      learn: () => {
        world.license = licensee;
      },
    });
  },
};

export function ask<Name extends OperatorCallName>(
  world: World,
  { name, tier, given, decide, learn, refused }: Asked<Name>,
): (step: OperatorStep) => Sent {
  return ({ operator, flaw, isWellFormed }) => {
    const signed = signAsOperator(
      OPERATORS[operator] ?? STRANGER,
      `/admin/${name}`,
      { given: JSON.stringify(given), isWellFormed },
      world.stamp(),
      flaw,
    );
    return {
      label: `${name} by ${signed.proof.holder}`,
      isSigned: true,
      judge: (edgeNow) => (authority) =>
        callAsOperator(authority, name, signed.judge(edgeNow), given, isWellFormed),
      predict: (moment) =>
        asOperator(moment, signed.proof, tier, isWellFormed, () => decide(moment)),
      learn: (value, made) => learn?.(value as JsonObject, made),
      ...(refused && { refused }),
    };
  };
}

/** The input of each query: no test has more than one page of policies. */
const READINGS = { openRoster: null, readPolicyHistory: { after: null, limit: 100 } } as const;

/** A query that only operators may make; the caller checks its answer. */
export function readAsOperator(
  world: World,
  name: 'openRoster' | 'readPolicyHistory',
  { operator, flaw }: OperatorStep,
  learn: (value: unknown) => void,
): Sent {
  const signed = signAsOperator(
    OPERATORS[operator] ?? STRANGER,
    `/admin/${name}`,
    {},
    world.stamp(),
    flaw,
  );
  return {
    label: `${name} by ${signed.proof.holder}`,
    isSigned: false,
    judge: (edgeNow) => (authority) =>
      callAsOperator(authority, name, signed.judge(edgeNow), READINGS[name], true),
    predict: (moment) => asOperator(moment, signed.proof, 'standard', true, () => answered()),
    learn,
  };
}
