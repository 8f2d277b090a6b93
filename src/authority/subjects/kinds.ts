/**
 * The kinds of trust subjects, and subjects at rest. This is the only place where their state machines run, for both
 * stored and unstored subjects.
 */

import {
  type AgentRegistration,
  type AgentRegistrationEvent,
  agentRegistrationMachine,
} from '../../../machines/agent-registration.ts';
import {
  type Attestation,
  type AttestationEvent,
  attestationMachine,
} from '../../../machines/attestation.ts';
import {
  type AuthorityKey,
  type AuthorityKeyEvent,
  authorityKeyMachine,
} from '../../../machines/authority-key.ts';
import {
  type Nullifier,
  type NullifierEvent,
  nullifierMachine,
} from '../../../machines/capability-nullifier.ts';
import {
  type Certificate,
  type CertificateEvent,
  certificateMachine,
} from '../../../machines/certificate.ts';
import { type Crl, type CrlEvent, crlMachine } from '../../../machines/crl.ts';
import {
  type LicensePolicy,
  type LicensePolicyEvent,
  licensePolicyMachine,
} from '../../../machines/data-license-policy.ts';
import { type Invite, type InviteEvent, inviteMachine } from '../../../machines/invite.ts';
import {
  type NodeDescription,
  type NodeDescriptionEvent,
  nodeDescriptionMachine,
} from '../../../machines/node-description.ts';
import { type NodeKey, type NodeKeyEvent, nodeKeyMachine } from '../../../machines/node-key.ts';
import {
  type OperatorKey,
  type OperatorKeyEvent,
  operatorKeyMachine,
} from '../../../machines/operator-key.ts';
import { type Policy, type PolicyEvent, policyMachine } from '../../../machines/policy.ts';
import {
  type RecognitionPolicyEvent,
  recognitionPolicyMachine,
  type StoredRecognitionPolicy,
} from '../../../machines/recognition-policy.ts';
import {
  type Treaty,
  type TreatyEvent,
  treatyMachine,
} from '../../../machines/recognition-treaty.ts';
import type { Refused } from '../../../machines/refused.ts';
import {
  type RemovalCount,
  type RemovalCountEvent,
  removalCountMachine,
} from '../../../machines/removal-count.ts';
import {
  type RestoredRevocation,
  type RestoredRevocationEvent,
  restoredRevocationMachine,
} from '../../../machines/restored-revocation.ts';
import {
  type ImportedFeed,
  type ImportedFeedEvent,
  type ImportedRevocation,
  type ImportedRevocationEvent,
  importedRevocationMachine,
  type RevocationImport,
  type RevocationImportEvent,
  revocationFeedMachine,
  revocationImportMachine,
} from '../../../machines/revocation-feed.ts';
import {
  type SovereignFeed,
  type SovereignFeedEvent,
  sovereignFeedMachine,
} from '../../../machines/sovereign-feed.ts';
import { type Emitted, type Resting, type Step, step } from '../../../machines/step.ts';
import { type Webhook, type WebhookEvent, webhookMachine } from '../../../machines/webhook.ts';

const MACHINES = {
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
  'imported-revocation': importedRevocationMachine,
  'capability-nullifier': nullifierMachine,
  'removal-count': removalCountMachine,
  'restored-revocation': restoredRevocationMachine,
  webhook: webhookMachine,
  'data-license-policy': licensePolicyMachine,
} as const;

export interface SubjectTypes {
  readonly invite: { readonly context: Invite; readonly event: InviteEvent };
  readonly certificate: { readonly context: Certificate; readonly event: CertificateEvent };
  readonly 'node-key': { readonly context: NodeKey; readonly event: NodeKeyEvent };
  readonly 'node-description': {
    readonly context: NodeDescription;
    readonly event: NodeDescriptionEvent;
  };
  readonly 'operator-key': { readonly context: OperatorKey; readonly event: OperatorKeyEvent };
  readonly 'authority-key': {
    readonly context: AuthorityKey;
    readonly event: AuthorityKeyEvent;
  };
  readonly policy: { readonly context: Policy; readonly event: PolicyEvent };
  readonly crl: { readonly context: Crl; readonly event: CrlEvent };
  readonly 'agent-registration': {
    readonly context: AgentRegistration;
    readonly event: AgentRegistrationEvent;
  };
  readonly attestation: { readonly context: Attestation; readonly event: AttestationEvent };
  readonly 'sovereign-feed': {
    readonly context: SovereignFeed;
    readonly event: SovereignFeedEvent;
  };
  readonly 'recognition-policy': {
    readonly context: StoredRecognitionPolicy;
    readonly event: RecognitionPolicyEvent;
  };
  readonly 'recognition-treaty': { readonly context: Treaty; readonly event: TreatyEvent };
  readonly 'revocation-feed': {
    readonly context: ImportedFeed;
    readonly event: ImportedFeedEvent;
  };
  readonly 'revocation-import': {
    readonly context: RevocationImport;
    readonly event: RevocationImportEvent;
  };
  readonly 'imported-revocation': {
    readonly context: ImportedRevocation;
    readonly event: ImportedRevocationEvent;
  };
  readonly 'capability-nullifier': {
    readonly context: Nullifier;
    readonly event: NullifierEvent;
  };
  'removal-count': { readonly context: RemovalCount; readonly event: RemovalCountEvent };
  readonly 'restored-revocation': {
    readonly context: RestoredRevocation;
    readonly event: RestoredRevocationEvent;
  };
  readonly webhook: { readonly context: Webhook; readonly event: WebhookEvent };
  /** Exists only in process memory [service-states-other], and is never part of a unit. */
  readonly 'data-license-policy': {
    readonly context: LicensePolicy;
    readonly event: LicensePolicyEvent;
  };
}

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
): Step {
  return step(MACHINES[kind], resting, event);
}

/** The refusal that a machine emitted, or null if it accepted the event. */
export function refusalIn<Name extends string>(emitted: readonly Emitted[]): Refused<Name> | null {
  const refused = emitted.find(({ type }) => type === 'refused');
  return refused === undefined ? null : (refused as Refused<Name>);
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
