/**
 * Agents, attestations, treaties, imported feeds and nullifiers [core-4-6], [core-4-11] to [core-4-14], [trust-4-5].
 */
import { judgeNodeProof, nonceKey, type Proof, withProof } from './access.ts';
import { endRegistration, isCompromised, liveCertificates, publishNext } from './enrollment.ts';
import { also, answered, type Moment, type Outcome, refused, stored } from './state.ts';

const HOUR = 3_600_000;

export interface Registration {
  readonly nodeKey: string;
  /** The descriptor as it was signed. */
  readonly descriptor: string;
  readonly capability: string;
  readonly registeredAt: number;
  readonly expiresAt: number;
  readonly isGenuine: boolean;
}

/** The edge has already checked the descriptor's times. */
export function registerAgent(moment: Moment, registration: Registration): Outcome {
  const { state, now } = moment;
  const { nodeKey, descriptor, capability, registeredAt, expiresAt, isGenuine } = registration;
  if (isCompromised(state, nodeKey)) return refused('node_key_revoked');
  if (liveCertificates(state, nodeKey, now).length === 0) {
    return refused('node_has_no_active_certificate');
  }
  if (!isGenuine) return refused('invalid_agent_signature');
  const before = state.agents.get(nodeKey);
  // Repeating the current registration only confirms it.
  if (before?.isRegistered && before.descriptor === descriptor) return answered();
  const isOld = registeredAt < (before?.newest ?? 0);
  if (isOld || before?.accepted.has(`${registeredAt} ${descriptor}`)) {
    return refused('descriptor_superseded');
  }
  const accepted = new Set(before?.accepted).add(`${registeredAt} ${descriptor}`);
  const agent = {
    isRegistered: true,
    descriptor,
    capability,
    expiresAt,
    newest: registeredAt,
    accepted,
  };
  return stored('agent_registered', ({ agents }) => agents.set(nodeKey, agent));
}

export interface DeleteEnvelope {
  readonly nodeKey: string;
  readonly isGenuine: boolean;
  readonly signature: string;
  readonly signedAt: number;
}

/** A genuine envelope works once, even if the request is refused. */
export function removeAgentByEnvelope(
  moment: Moment,
  envelope: DeleteEnvelope,
): readonly Outcome[] {
  const { nodeKey, isGenuine, signature, signedAt } = envelope;
  const spent = `agent-delete:${nodeKey} ${signature}`;
  const isReplay = moment.state.spent.has(spent);
  if (!isGenuine) return [refused('invalid_agent_signature')];
  const outcome = remove(moment, nodeKey, signedAt, isReplay);
  if (isReplay) return [outcome];
  const admitted = also(outcome, (state) => state.spent.add(spent));
  return moment.mayBeForgotten(signedAt)
    ? [admitted, remove(moment, nodeKey, signedAt, true)]
    : [admitted];
}

/** With the proof header: a genuine one spends its nonce even if the request is refused. */
export function removeAgentByProof(moment: Moment, proof: Proof): readonly Outcome[] {
  const { holder: nodeKey, signedAt } = proof;
  const scope = `node:${nodeKey}`;
  return withProof(judgeNodeProof(moment, scope, proof), () =>
    also(remove(moment, nodeKey, signedAt, false), ({ spent }) =>
      spent.add(nonceKey(scope, proof)),
    ),
  );
}

function remove(
  { state, now }: Moment,
  nodeKey: string,
  signedAt: number,
  isReplay: boolean,
): Outcome {
  const agent = state.agents.get(nodeKey);
  if (!agent?.isRegistered || agent.expiresAt <= now) return refused('agent_not_registered');
  if (isReplay) return refused('invalid_agent_signature');
  return stored('agent_deregistered', (next) => endRegistration(next, nodeKey, signedAt));
}

export function issueAttestation(issuer: string, subject: string): Outcome {
  return stored(
    'membership_attestation_issued',
    ({ attestations }, made) => {
      for (const id of made('attestation')) attestations.set(id, { issuer, subject, reason: null });
    },
    (made) => ({
      attestation_id: made('attestation')[0],
      issuer_sovereign_id: issuer,
      subject_id: subject,
    }),
  );
}

/** The first revocation wins; the attestation changes together with the issuer's next feed. */
export function revokeAttestation({ state, now }: Moment, id: string, reason: string): Outcome {
  const attestation = state.attestations.get(id);
  if (attestation === undefined) return refused('attestation_not_found');
  if (attestation.reason !== null) {
    return answered(() => ({ attestation_id: id, status: 'revoked', already_revoked: true }));
  }
  return stored(
    'membership_attestation_revoked',
    (next) => {
      next.attestations.set(id, { ...attestation, reason });
      publishNext(next, attestation.issuer, now);
    },
    () => ({ attestation_id: id, status: 'revoked' }),
  );
}

export function issueTreaty(
  { now }: Moment,
  subject: string,
  subjectKey: string,
  validityHours: number,
): Outcome {
  const expiresAt = now + validityHours * HOUR;
  const treaty = { subject, subjectKey, expiresAt, revokedAt: null, reason: null };
  return stored(
    'recognition_treaty_issued',
    ({ treaties }, made) => {
      for (const id of made('recognition-treaty')) treaties.set(id, treaty);
    },
    (made) => ({ treaty_id: made('recognition-treaty')[0], subject_sovereign_id: subject }),
  );
}

/**
 * A repetition may change the reason, for example to name the successor, but keeps the time of the first revocation.
 */
export function revokeTreaty({ state, now }: Moment, id: string, reason: string): Outcome {
  const treaty = state.treaties.get(id);
  if (treaty === undefined) return refused('treaty_not_found');
  const revoked = { ...treaty, revokedAt: treaty.revokedAt ?? now, reason };
  return stored(
    'recognition_treaty_revoked',
    ({ treaties }) => treaties.set(id, revoked),
    () => ({ treaty_id: id, status: 'revoked' }),
  );
}

export function setRecognitionPolicy(local: string): Outcome {
  return stored(
    'recognition_policy_saved',
    (state) => {
      state.recognitionPolicy = local;
    },
    () => ({ local_sovereign_id: local, active: true }),
  );
}

export interface Feed {
  readonly issuer: string;
  readonly sequence: number;
  readonly ids: readonly string[];
  /** The key that signed it; null if unsigned. */
  readonly signedBy: string | null;
  /** The key that the operator vouches for; null to use those of treaties. */
  readonly givenKey: string | null;
}

export function importFeed(moment: Moment, feed: Feed): Outcome {
  const { state, shown, now } = moment;
  const { issuer, sequence, ids, signedBy, givenKey } = feed;
  // A treaty counts once it has been answered, and no longer once its revocation is decided.
  const vouched = [...shown.treaties]
    .map(([id, treaty]) => state.treaties.get(id) ?? treaty)
    .filter(
      (one) => one.subject === issuer && one.revokedAt === null && one.expiresAt - now >= 1000,
    )
    .map(({ subjectKey }) => subjectKey);
  const keys = givenKey === null ? vouched : [givenKey];
  if (keys.length === 0) return refused('missing_issuer_public_keys');
  if (sequence <= (state.importedFeeds.get(issuer) ?? -1)) return refused('stale_sequence');
  if (signedBy === null) return refused('missing_feed_signature');
  if (!keys.includes(signedBy)) return refused('invalid_feed_signature');
  return stored(
    'sovereign_revocation_feed_imported',
    ({ importedFeeds, importedIds }) => {
      importedFeeds.set(issuer, sequence);
      for (const id of ids) importedIds.add(`${issuer} ${id}`);
    },
    () => ({ accepted: true, issuer_sovereign_id: issuer, sequence }),
  );
}

/** A proof id can be nullified only once. */
export function nullify({ state }: Moment, proofId: string): Outcome {
  if (state.nullified.has(proofId)) return refused('nullifier_failed');
  return stored(
    'capability_nullifier_issued',
    ({ nullified }) => nullified.add(proofId),
    () => ({ proof_id: proofId }),
  );
}
