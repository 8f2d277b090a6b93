/**
 * Hosts the trust subjects: each at rest as state value and context, woken through its machine when an
 * event arrives. Decisions are made against pending state (what is decided but not yet on disk); views
 * read committed state only.
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
import { type Invite, type InviteEvent, inviteMachine } from '../../../machines/invite.ts';
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
import {
  type ImportedFeed,
  type ImportedFeedEvent,
  type ImportedRevocation,
  type ImportedRevocationEvent,
  importedRevocationMachine,
  revocationFeedMachine,
} from '../../../machines/revocation-feed.ts';
import {
  type SovereignFeed,
  type SovereignFeedEvent,
  sovereignFeedMachine,
} from '../../../machines/sovereign-feed.ts';
import type { Resting } from '../../../machines/step.ts';
import type { StoredSubject, SubjectWrite } from '../../store/store.ts';
import { createCertificateTable } from '../tables/certificate-table.ts';

export const MACHINES = {
  invite: inviteMachine,
  certificate: certificateMachine,
  'operator-key': operatorKeyMachine,
  policy: policyMachine,
  crl: crlMachine,
  'agent-registration': agentRegistrationMachine,
  attestation: attestationMachine,
  'sovereign-feed': sovereignFeedMachine,
  'recognition-policy': recognitionPolicyMachine,
  'recognition-treaty': treatyMachine,
  'revocation-feed': revocationFeedMachine,
  'imported-revocation': importedRevocationMachine,
  'capability-nullifier': nullifierMachine,
} as const;

export interface SubjectTypes {
  readonly invite: { readonly context: Invite; readonly event: InviteEvent };
  readonly certificate: { readonly context: Certificate; readonly event: CertificateEvent };
  readonly 'operator-key': { readonly context: OperatorKey; readonly event: OperatorKeyEvent };
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
  readonly 'imported-revocation': {
    readonly context: ImportedRevocation;
    readonly event: ImportedRevocationEvent;
  };
  readonly 'capability-nullifier': {
    readonly context: Nullifier;
    readonly event: NullifierEvent;
  };
}

export type SubjectKind = keyof typeof MACHINES;

export interface Subject<Kind extends SubjectKind = SubjectKind> extends Resting {
  /** 0 for a subject that is configured, not stored. */
  readonly version: number;
  readonly context: SubjectTypes[Kind]['context'];
}

/** Subjects of one kind at rest, by their ids: a `Map`, or what takes less memory than one. */
export interface SubjectTable<Kind extends SubjectKind> {
  readonly size: number;
  get(id: string): Subject<Kind> | undefined;
  set(id: string, subject: Subject<Kind>): unknown;
  entries(): IterableIterator<[string, Subject<Kind>]>;
}

/** Called with each subject as it comes to be decided or, separately, committed. */
export type SubjectListener = (kind: SubjectKind, id: string, subject: Subject) => void;

export interface Subjects {
  /** The subject as decided so far, whether or not it is on disk. */
  current<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined;
  /** The subject as it stands on disk. */
  committed<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined;
  allCommitted<Kind extends SubjectKind>(kind: Kind): IterableIterator<[string, Subject<Kind>]>;
  countCommitted(kind: SubjectKind): number;
  /** Takes a subject from the store, or from the configuration, as committed. */
  restore(kind: SubjectKind, id: string, subject: Subject): void;
  decide(writes: readonly SubjectWrite[]): void;
  settle(writes: readonly SubjectWrite[]): void;
  onDecided(listener: SubjectListener): void;
  onCommitted(listener: SubjectListener): void;
}

export function createSubjects(): Subjects {
  const committed = new Map<string, SubjectTable<SubjectKind>>();
  for (const kind of Object.keys(MACHINES)) committed.set(kind, new Map());
  committed.set('certificate', createCertificateTable() as SubjectTable<SubjectKind>);
  const pending = new Map<string, Subject>();
  const decidedListeners: SubjectListener[] = [];
  const committedListeners: SubjectListener[] = [];

  function ofKind<Kind extends SubjectKind>(kind: Kind): SubjectTable<Kind> {
    return committed.get(kind) as SubjectTable<Kind>;
  }

  function tell(listeners: readonly SubjectListener[], write: StoredSubject): void {
    for (const listener of listeners) listener(kindOf(write), write.id, toSubject(write));
  }

  return {
    current<Kind extends SubjectKind>(kind: Kind, id: string) {
      const decided = pending.size > 0 ? pending.get(`${kind} ${id}`) : undefined;
      return (decided as Subject<Kind> | undefined) ?? ofKind(kind).get(id);
    },
    committed: (kind, id) => ofKind(kind).get(id),
    allCommitted: (kind) => ofKind(kind).entries(),
    countCommitted: (kind) => ofKind(kind).size,
    restore(kind, id, subject) {
      ofKind(kind).set(id, subject);
      for (const listener of decidedListeners) listener(kind, id, subject);
      for (const listener of committedListeners) listener(kind, id, subject);
    },
    decide(writes) {
      for (const write of writes) {
        pending.set(`${write.kind} ${write.id}`, toSubject(write));
        tell(decidedListeners, write);
      }
    },
    settle(writes) {
      for (const write of writes) {
        const key = `${write.kind} ${write.id}`;
        if (pending.get(key)?.version === write.version) pending.delete(key);
        ofKind(kindOf(write)).set(write.id, toSubject(write));
        tell(committedListeners, write);
      }
    },
    onDecided: (listener) => decidedListeners.push(listener),
    onCommitted: (listener) => committedListeners.push(listener),
  };
}

export function toSubject({ version, snapshot }: StoredSubject): Subject {
  return { version, value: snapshot.value, context: snapshot.context as Subject['context'] };
}

function kindOf({ kind }: StoredSubject): SubjectKind {
  return kind as SubjectKind;
}
