/**
 * Commands of the trust protocol in process, read and decided as by the routes of an authority, but without a proof of
 * the operator and without a store.
 */
import type { Authority } from '../../src/authority/authority.ts';
import { HANDLERS } from '../../src/authority/commands.ts';
import type { OperatorHandler } from '../../src/authority/engine/admission.ts';
import { createGraphCaches } from '../../src/authority/recognition/graph.ts';
import { createRecognitionIndex } from '../../src/authority/recognition/recognition-index.ts';
import { UnitOfWork } from '../../src/authority/subjects/unit-of-work.ts';
import { parseJson } from '../../src/base/json/parse.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { API } from '../../src/protocol/api/table.ts';
import { Refusal } from '../../src/protocol/refusals.ts';
import { HOUR } from './clock.ts';
import type { Party } from './trust-protocol.ts';
import { NOW, refusalText, us } from './verifications.ts';

export type TrustCommand =
  | 'offerCapabilities'
  | 'counterOffer'
  | 'acceptAgreement'
  | 'decideBoundary'
  | 'buildEvidence'
  | 'commitCapabilities'
  | 'nullifyProof'
  | 'castVote'
  | 'assembleConsensus'
  | 'createLicensePolicy'
  | 'declareIntent';

export interface Decider {
  readonly partners?: readonly Party[];
  /** Keys with which the authority has signed before. */
  readonly retiredKeys?: readonly string[];
  readonly commitWithinAgreement?: boolean;
}

/** The authority `us`, as far as these commands need it, with a treaty with each of the partners. */
function authorityOf({
  partners = [],
  retiredKeys = [],
  commitWithinAgreement = true,
}: Decider): Authority {
  const recognition = createRecognitionIndex();
  for (const { name, key } of partners) {
    recognition.putTreaty(`treaty-${name}`, {
      json: '{}',
      issuer: us.name,
      subject: name,
      subjectKeys: [key.publicKey],
      issuedAt: NOW,
      validFrom: formatInstant(NOW),
      expiresAt: NOW + 1000 * HOUR,
      revokedAt: null,
      revocationReason: null,
      followed: [],
    });
  }
  recognition.endLoading();
  const known = {
    settings: { networkName: us.name, commitWithinAgreement },
    signer: { ...us.key, keyId: us.key.publicKey, previous: null },
    authorityKeys: {
      chain: () => ({ current: us.key, trusted: [us.key.publicKey, ...retiredKeys] }),
    },
    runtime: systemRuntime,
    recognition,
    graph: createGraphCaches(recognition),
    subjects: { current: () => undefined },
  };
  return known as unknown as Authority;
}

const authorities = new WeakMap<Decider, Authority>();
const NOBODY: Decider = {};

/** No command changes what these authorities know, so there is one for each decider. */
function authorityFor(decider: Decider): Authority {
  const na = authorities.get(decider) ?? authorityOf(decider);
  authorities.set(decider, na);
  return na;
}

const CONTEXT = {
  now: NOW,
  uuid: () => systemRuntime.uuid(),
  isAllowedRole: () => true,
  maxFeedEntries: 0,
};
const OPERATOR = { keyId: 'ops-privileged', remoteAddr: '127.0.0.1' };

/** The record that a command answers; throws the refusal. */
export function recordOf(name: TrustCommand, body: JsonObject, decider = NOBODY): JsonObject {
  const sent = { params: {}, query: {}, body: parseJson(jsonText(body)) as JsonObject };
  const input = API[name].read(sent, CONTEXT);
  if (!input.ok) throw new Refusal(input.refusal, input.details);
  const na = authorityFor(decider);
  const handle = HANDLERS[name] as OperatorHandler<unknown>;
  const record = handle(na, new UnitOfWork(na.subjects, NOW), input.value, OPERATOR);
  return parseJson(jsonText(record)) as JsonObject;
}

/** The record, or the refusal with its cause, such as `422 accept_rejected offer_expired`. */
export function answerOf(
  name: TrustCommand,
  body: JsonObject,
  decider?: Decider,
): JsonObject | string {
  try {
    return recordOf(name, body, decider);
  } catch (cause) {
    return refusalText(cause);
  }
}

/** `201`, or the refusal with its cause. */
export function outcomeOf(name: TrustCommand, body: JsonObject, decider?: Decider): string {
  const answer = answerOf(name, body, decider);
  return typeof answer === 'string' ? answer : '201';
}

/** The outcomes of a body with changes. */
export function outcomesOf(name: TrustCommand, body: JsonObject = {}, decider?: Decider) {
  return (changes: JsonObject) => outcomeOf(name, { ...body, ...changes }, decider);
}
