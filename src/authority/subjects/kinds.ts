/**
 * The kinds of trust subjects, and subjects at rest. This is the only place where their state machines run, for both
 * stored and unstored subjects.
 */

import { agentRegistrationMachine } from '../../../machines/agent-registration.ts';
import { attestationMachine } from '../../../machines/attestation.ts';
import { authorityKeyMachine } from '../../../machines/authority-key.ts';
import { nullifierMachine } from '../../../machines/capability-nullifier.ts';
import { certificateMachine } from '../../../machines/certificate.ts';
import { inviteMachine } from '../../../machines/invite.ts';
import { nodeDescriptionMachine } from '../../../machines/node-description.ts';
import {
  licensePolicyMachine,
  nodeKeyMachine,
  recognitionPolicyMachine,
  restoredRevocationMachine,
} from '../../../machines/one-record.ts';
import { operatorKeyMachine } from '../../../machines/operator-key.ts';
import { policyMachine } from '../../../machines/policy.ts';
import { treatyMachine } from '../../../machines/recognition-treaty.ts';
import type { Refused } from '../../../machines/refused.ts';
import { removalCountMachine } from '../../../machines/removal-count.ts';
import {
  revocationFeedMachine,
  revocationImportMachine,
} from '../../../machines/revocation-feed.ts';
import { crlMachine, sovereignFeedMachine } from '../../../machines/signed-sequence.ts';
import {
  type ContextOf,
  type Emitted,
  type EmittedOf,
  type EventOf,
  type Resting,
  type Step,
  step,
} from '../../../machines/step.ts';
import { webhookMachine } from '../../../machines/webhook.ts';

/** By kind, which is the name under which a subject is stored. */
export const MACHINES = {
  invite: inviteMachine,
  certificate: certificateMachine,
  'node-key': nodeKeyMachine,
  'node-description': nodeDescriptionMachine,
  'operator-key': operatorKeyMachine,
  'authority-key': authorityKeyMachine,
  policy: policyMachine,
  crl: crlMachine,
  'agent-registration': agentRegistrationMachine,
  attestation: attestationMachine,
  'sovereign-feed': sovereignFeedMachine,
  'recognition-policy': recognitionPolicyMachine,
  'recognition-treaty': treatyMachine,
  'revocation-feed': revocationFeedMachine,
  'revocation-import': revocationImportMachine,
  'capability-nullifier': nullifierMachine,
  'removal-count': removalCountMachine,
  'restored-revocation': restoredRevocationMachine,
  webhook: webhookMachine,
  /** Exists only in process memory [service-states-other], and is never part of a unit. */
  'data-license-policy': licensePolicyMachine,
} as const;

/** What each kind remembers, which events it accepts and what it emits, as its machine says. */
export type SubjectTypes = {
  readonly [Kind in keyof typeof MACHINES]: {
    readonly context: ContextOf<(typeof MACHINES)[Kind]>;
    readonly event: EventOf<(typeof MACHINES)[Kind]>;
    readonly emitted: EmittedOf<(typeof MACHINES)[Kind]>;
  };
};

export type SubjectKind = keyof SubjectTypes;

export const KINDS = Object.keys(MACHINES) as readonly SubjectKind[];

/** The address of a subject; the only place that defines its format. */
export function addressOf(kind: string, id: string): string {
  return `${kind} ${id}`;
}

/** Sends one event to a subject at rest, which is `undefined` if the subject does not exist yet. */
export function transition<Kind extends SubjectKind>(
  kind: Kind,
  resting: Resting | undefined,
  event: SubjectTypes[Kind]['event'],
): StepOf<Kind> {
  return step(MACHINES[kind], resting, event) as StepOf<Kind>;
}

interface StepOf<Kind extends SubjectKind> extends Step {
  readonly emitted: readonly SubjectTypes[Kind]['emitted'][];
}

/** The refusal that a machine emitted, or null if it accepted the event. */
export function refusalIn<Any extends Emitted>(
  emitted: readonly Any[],
): Extract<Any, Refused<string>> | null {
  const refused = emitted.find(({ type }) => type === 'refused');
  return refused === undefined ? null : (refused as Extract<Any, Refused<string>>);
}

export interface Subject<Kind extends SubjectKind = SubjectKind> extends Resting {
  /** 0 for a subject that comes from the configuration and is not stored. */
  readonly version: number;
  readonly context: SubjectTypes[Kind]['context'];
}

/** Subjects of one kind at rest, by id: a `Map`, or a structure that needs less memory. */
export interface SubjectTable<Kind extends SubjectKind> {
  readonly size: number;
  get(id: string): Subject<Kind> | undefined;
  set(id: string, subject: Subject<Kind>): unknown;
  delete(id: string): boolean;
  /** The iterator remains valid while subjects are set or deleted. */
  entries(): IterableIterator<[string, Subject<Kind>]>;
}
