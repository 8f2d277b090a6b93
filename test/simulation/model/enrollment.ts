/**
 * Invites, certificates, operator keys and policies, according to the state tables of the contract
 * [service-states-and-transitions].
 */
import { judgeNodeProof, nonceKey, type Proof, type ProofVerdict, withProof } from './access.ts';
import {
  also,
  answered,
  type Certificate,
  type Change,
  type Moment,
  type Outcome,
  refused,
  type State,
  stored,
} from './state.ts';

const HOUR = 3_600_000;
/** How long a renewed certificate stays usable. */
export const RENEWAL_GRACE = 900_000;
/** How many live certificates a key may have at once. */
const MOST_LIVE = 16;
/** With this many unexpired certificates, a renewal no longer supersedes others. */
const MOST_UNEXPIRED = 256;
/** How long ended subjects are kept. */
export const RETENTION = 2 * HOUR;

export interface InviteTerms {
  readonly roles: readonly string[];
  /** The longest validity of a certificate, and that of the token. */
  readonly hours: number;
  readonly recipient: string | null;
}

export function createInvite({ now }: Moment, { roles, hours, recipient }: InviteTerms): Outcome {
  const maxValidityHours = hours;
  const expiresAt = now + hours * HOUR;
  const invite = { roles, maxValidityHours, expiresAt, recipient, isUsed: false };
  return stored('invite_created', ({ invites }, made) => {
    for (const id of made('invite')) invites.set(id, invite);
  });
}

export interface JoinRequest {
  readonly proof: Proof;
  readonly inviteId: string;
  readonly validityHours: number;
}

export function join(moment: Moment, request: JoinRequest): readonly Outcome[] {
  const { state, now } = moment;
  const { proof, inviteId, validityHours } = request;
  const { holder: nodeKey } = proof;
  const scope = `join:${nodeKey}`;
  if (isCompromised(state, nodeKey)) return [refused('node_key_compromised')];
  const invite = state.invites.get(inviteId);
  const isUsable =
    invite !== undefined &&
    !invite.isUsed &&
    now <= invite.expiresAt &&
    (invite.recipient ?? nodeKey) === nodeKey;
  if (!isUsable) return [refused('invalid_invite_token')];
  const { roles, maxValidityHours } = invite;
  return withProof(judgeNodeProof(moment, scope, proof), () => {
    if (liveCertificates(state, nodeKey, now).length >= MOST_LIVE) {
      return refused('too_many_live_certificates');
    }
    return also(
      issued('certificate_issued', now, nodeKey, { roles, maxValidityHours }, validityHours),
      ({ invites, spent }) => {
        invites.set(inviteId, { ...invite, isUsed: true });
        spent.add(nonceKey(scope, proof));
      },
    );
  });
}

function issued(
  event: string,
  now: number,
  nodeKey: string,
  terms: Pick<Certificate, 'roles' | 'maxValidityHours'>,
  requestedHours: number,
): Outcome {
  const { roles, maxValidityHours } = terms;
  const certificate: Certificate = {
    nodeKey,
    roles,
    maxValidityHours,
    issuedAt: now,
    expiresAt: now + Math.min(requestedHours, maxValidityHours) * HOUR,
    renewedAt: null,
    supersededFrom: null,
    revocation: null,
  };
  return stored(
    event,
    (state, made) => {
      for (const id of made('certificate')) state.certificates.set(id, certificate);
      state.issued += 1;
    },
    (made) => ({ cert_id: made('certificate')[0], node_public_key: nodeKey, roles }),
  );
}

export interface NodeRequest {
  readonly proof: Proof;
  readonly certId: string;
}

export function heartbeat(moment: Moment, request: NodeRequest): readonly Outcome[] {
  return withCertificate(moment, provenBy(moment, request), () => ACKNOWLEDGED);
}

const ACKNOWLEDGED = answered(() => ({ ack: true }));

/**
 * Predicts a heartbeat that the edge has accepted as part of a session; `verdict` is whether its instant is new
 * [core-3-4].
 */
export function beatInSession(
  moment: Moment,
  { certId, nodeKey }: Pick<Proven, 'certId' | 'nodeKey'>,
  verdict: ProofVerdict,
): readonly Outcome[] {
  const proven = { certId, nodeKey, verdict, failure: 'session_ended' };
  return withCertificate(moment, proven, () => ACKNOWLEDGED);
}

export interface RenewRequest extends NodeRequest {
  readonly validityHours: number;
  /** Null if the node claims none. */
  readonly roles: readonly string[] | null;
}

export function renew(moment: Moment, request: RenewRequest): readonly Outcome[] {
  const { now } = moment;
  const { certId, proof, validityHours, roles } = request;
  return withCertificate(moment, provenBy(moment, request), (certificate) => {
    if (roles !== null && !isSameSet(roles, certificate.roles)) {
      return refused('renewal_role_change_forbidden');
    }
    const live = liveCertificates(moment.state, proof.holder, now);
    const unexpired = [...moment.state.certificates.values()].filter(
      ({ nodeKey, expiresAt }) => nodeKey === proof.holder && expiresAt > now,
    );
    if (live.length >= MOST_LIVE && unexpired.length >= MOST_UNEXPIRED) {
      return refused('too_many_live_certificates');
    }
    const supersededFrom = certificate.supersededFrom ?? now + RENEWAL_GRACE;
    const renewed = { ...certificate, renewedAt: now, supersededFrom };
    const { holder: nodeKey } = proof;
    return also(
      issued('certificate_renewed', now, nodeKey, certificate, validityHours),
      ({ certificates, spent }) => {
        certificates.set(certId, renewed);
        supersedeOldest(certificates, live, certId, now);
        spent.add(nonceKey(`node:${nodeKey}`, proof));
      },
    );
  });
}

/** A key that is at its limit of live certificates loses its oldest ones, but never the renewed one. */
function supersedeOldest(
  certificates: Map<string, Certificate>,
  live: readonly string[],
  renewedId: string,
  now: number,
): void {
  const others = live
    .flatMap((id) => {
      const certificate = certificates.get(id);
      return certificate === undefined || id === renewedId ? [] : [{ id, certificate }];
    })
    .sort((a, b) => a.certificate.issuedAt - b.certificate.issuedAt || (a.id < b.id ? -1 : 1));
  for (const { id, certificate } of others.slice(0, Math.max(0, live.length + 1 - MOST_LIVE))) {
    certificates.set(id, { ...certificate, supersededFrom: now });
  }
}

interface Proven {
  readonly certId: string;
  readonly nodeKey: string;
  readonly verdict: ProofVerdict;
  /** The refusal if the proof fails. */
  readonly failure: string;
}

function provenBy(moment: Moment, { proof, certId }: NodeRequest): Proven {
  const { holder: nodeKey } = proof;
  const verdict = judgeNodeProof(moment, `node:${nodeKey}`, proof);
  return { certId, nodeKey, verdict, failure: 'node_auth_failed' };
}

/** The checks that heartbeat and renewal share [core-4-4]: first the certificate, then the proof, then the time. */
function withCertificate(
  moment: Moment,
  { certId, nodeKey, verdict, failure }: Proven,
  go: (certificate: Certificate) => Outcome,
): readonly Outcome[] {
  const { state, now } = moment;
  const certificate = state.certificates.get(certId);
  if (certificate === undefined) return [refused('unknown_certificate')];
  if (certificate.nodeKey !== nodeKey) return [refused('certificate_key_mismatch')];
  if (certificate.revocation !== null || isCompromised(state, nodeKey)) {
    return [refused('certificate_revoked')];
  }
  return withProof(
    verdict,
    () => {
      if (certificate.issuedAt > now) return refused('certificate_not_yet_valid');
      if (certificate.expiresAt <= now) return refused('certificate_expired');
      if ((certificate.supersededFrom ?? Infinity) <= now) return refused('certificate_superseded');
      return go(certificate);
    },
    failure,
  );
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return [...a].sort().join() === [...b].sort().join();
}

/** A compromise ends all certificates of the key in a single version of the list. */
export function revokeCertificate(moment: Moment, certId: string, reason: string): Outcome {
  const { state, now } = moment;
  const certificate = state.certificates.get(certId);
  if (certificate === undefined) return refused('certificate_not_found');
  const { nodeKey } = certificate;
  const isEnded = ([id, one]: readonly [string, Certificate]) =>
    one.revocation === null &&
    (id === certId ||
      (reason === 'key_compromise' && one.nodeKey === nodeKey && one.expiresAt > now));
  const ended = [...state.certificates]
    .filter(isEnded)
    .map(([id]) => id)
    .sort();
  const live = liveCertificates(state, nodeKey, now).filter((id) => !ended.includes(id));
  const { sequence } = publicationOf(state, 'crl');
  const answer = {
    crl_sequence: sequence + Math.sign(ended.length),
    revoked_count: state.revoked.size + ended.length,
    ...(ended.some((id) => id !== certId) ? { revoked_cert_ids: ended } : {}),
    ...(live.length > 0 ? { live_certificates_of_key: live.length } : {}),
  };
  if (ended.length === 0) {
    if (reason !== 'key_compromise' || isCompromised(state, nodeKey)) return answered(() => answer);
    return stored('node_key_compromised', recordCompromise(nodeKey, now), () => answer);
  }
  const change: Change = (next) => {
    for (const id of ended) {
      const one = next.certificates.get(id) ?? certificate;
      next.certificates.set(id, { ...one, revocation: { at: now, reason } });
      next.revoked.add(id);
    }
    publishNext(next, 'crl', now);
    endRegistration(next, nodeKey, now);
  };
  return stored('certificate_revoked', change, () => answer, ended.length);
}

/** For a key whose certificates had all ended for other reasons; they keep those. */
function recordCompromise(nodeKey: string, now: number): Change {
  return (next) => {
    next.compromised.add(nodeKey);
    endRegistration(next, nodeKey, now);
  };
}

/** Published since the first start; the feed of another issuer begins with its first revocation. */
const FROM_ZERO: ReadonlySet<string> = new Set(['crl', 'alpha']);

export function publicationOf({ publications }: State, name: string) {
  const first = FROM_ZERO.has(name) ? 0 : 1;
  return publications.get(name) ?? { sequence: first - 1, issuedAt: 0 };
}

export function publishNext(state: State, name: string, now: number): void {
  const { sequence } = publicationOf(state, name);
  state.publications.set(name, { sequence: sequence + 1, issuedAt: now });
}

/**
 * Ends an agent's registration, because it was removed or its node lost its certificate: peers no longer find the
 * agent, and no earlier descriptor can restore it.
 */
export function endRegistration({ agents }: State, nodeKey: string, at: number): void {
  const agent = agents.get(nodeKey);
  if (!agent?.isRegistered) return;
  agents.set(nodeKey, { ...agent, isRegistered: false, newest: Math.max(agent.newest, at) });
}

/** Whether any certificate of the key was revoked for key compromise, or the compromise was recorded separately. */
export function isCompromised({ certificates, compromised }: State, nodeKey: string): boolean {
  return (
    compromised.has(nodeKey) ||
    [...certificates.values()].some(
      (one) => one.nodeKey === nodeKey && one.revocation?.reason === 'key_compromise',
    )
  );
}

/** Ids of a key's certificates that are not revoked, expired or superseded. */
export function liveCertificates(
  { certificates }: State,
  nodeKey: string,
  now: number,
): readonly string[] {
  return [...certificates]
    .filter(
      ([, one]) =>
        one.nodeKey === nodeKey &&
        one.revocation === null &&
        one.expiresAt > now &&
        (one.supersededFrom ?? Infinity) > now,
    )
    .map(([id]) => id);
}

export function revokeOperatorKey({ state }: Moment, keyId: string): Outcome {
  const operator = state.operators.get(keyId);
  if (operator === undefined) return refused('unknown_operator_key');
  if (operator.isOff) return answered(() => ({ key_id: keyId, already_revoked: true }));
  const others = [...state.operators].filter(([id, { isOff }]) => id !== keyId && !isOff);
  if (others.length === 0) return refused('last_active_operator_key');
  return stored(
    'operator_key_revoked',
    ({ operators }) => operators.set(keyId, { ...operator, isOff: true }),
    () => ({ key_id: keyId, already_revoked: false, remaining_active_keys: others.length }),
  );
}

/** Publishing the same id again replaces that version. */
export function publishPolicy({ now }: Moment, policyId: string): Outcome {
  const change: Change = (state) => {
    state.policies.set(policyId, now);
    state.activePolicy = policyId;
  };
  return stored('policy_published', change, () => ({ policy_id: policyId }));
}

export function rollBackPolicy({ state }: Moment, policyId: string): Outcome {
  if (!state.policies.has(policyId)) return refused('policy_not_found');
  const change: Change = (next) => {
    next.activePolicy = policyId;
  };
  return stored('policy_rolled_back', change, () => ({ policy_id: policyId }));
}

/** The first read of a network without a policy creates the default. */
export function readPolicy({ state, now }: Moment, defaultId: string): Outcome {
  if (state.activePolicy !== null) return answered();
  const change: Change = (next) => {
    next.policies.set(defaultId, now);
    next.activePolicy = defaultId;
  };
  return { ...answered(), change };
}
