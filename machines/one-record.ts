/** Subjects that are one record, which a later one replaces, or which is final. */
import { setup } from 'xstate';

interface OneRecordOptions<Subject, State extends string> {
  readonly id: string;
  /** The context before there is a record. */
  readonly none: Subject;
  /** The state in which there is one. */
  readonly state: State;
  /** Whether the first record stays for good. */
  readonly isFinal: boolean;
}

export function oneRecordMachine<Subject extends object, State extends string>({
  id,
  none,
  state,
  isFinal,
}: OneRecordOptions<Subject, State>) {
  const record = setup({
    types: {} as {
      context: Subject;
      events: { readonly type: 'record'; readonly record: Subject };
      emitted: { readonly type: 'recorded' | 'already_recorded' };
      tags: 'terminal';
    },
  });
  const accepting = record.createStateConfig({
    on: {
      record: {
        target: state,
        actions: [record.assign(({ event }) => event.record), record.emit({ type: 'recorded' })],
      },
    },
  });
  const final = record.createStateConfig({
    tags: 'terminal',
    on: { record: { actions: record.emit({ type: 'already_recorded' }) } },
  });
  return record.createMachine({
    id,
    initial: 'absent',
    context: none,
    states: { absent: accepting, [state]: isFinal ? final : accepting },
  });
}

/**
 * A compromised node key whose certificates do not record the compromise [core-4-8]: all of them had already been
 * revoked for other reasons, which stay as published. Final: a key that others may know is never trusted again.
 */
export interface NodeKey {
  readonly nodePublicKey: string;
  /** Milliseconds since the epoch. */
  readonly compromisedAt: number;
}

export const nodeKeyMachine = oneRecordMachine<NodeKey, 'compromised'>({
  id: 'node-key',
  none: { nodePublicKey: '', compromisedAt: 0 },
  state: 'compromised',
  isFinal: true,
});

/**
 * A revocation that a restore knows only from a published list [backup-7]: the certificate or attestation was issued
 * after the backup, so nothing else about it survives. Final, like every revocation. Instants are milliseconds since the
 * epoch.
 */
export interface RestoredRevocation {
  readonly list: 'crl' | 'feed';
  /** The certificate or attestation. */
  readonly revokedId: string;
  /** The issuer of the attestation; empty for a certificate. */
  readonly issuer: string;
  readonly revokedAt: number;
  readonly reason: string;
  /** The first CRL sequence after the restore that lists it; null for an attestation. */
  readonly crlSequence: number | null;
}

/** The id of a restored revocation: a certificate and an attestation may have the same one. */
export function restoredRevocationId(list: RestoredRevocation['list'], revokedId: string): string {
  return `${list}:${revokedId}`;
}

export const restoredRevocationMachine = oneRecordMachine<RestoredRevocation, 'revoked'>({
  id: 'restored-revocation',
  none: { list: 'crl', revokedId: '', issuer: '', revokedAt: 0, reason: '', crlSequence: null },
  state: 'revoked',
  isFinal: true,
});

/** Recognition policy [core-4-12]: the last one set is active. */
export interface StoredRecognitionPolicy {
  readonly policyId: string;
  /** The policy, as served. */
  readonly json: string;
  /** Milliseconds since the epoch. */
  readonly setAt: number;
}

export const recognitionPolicyMachine = oneRecordMachine<StoredRecognitionPolicy, 'active'>({
  id: 'recognition-policy',
  none: { policyId: '', json: '', setAt: 0 },
  state: 'active',
  isFinal: false,
});

/**
 * The data-license policy in force [service-states-other]: the last one created. It exists only in process memory and
 * is lost on restart.
 */
export interface LicensePolicy {
  /** The signed record as JSON text. */
  readonly json: string;
  /** Milliseconds since the epoch. */
  readonly validUntil: number;
}

export const licensePolicyMachine = oneRecordMachine<LicensePolicy, 'active'>({
  id: 'data-license-policy',
  none: { json: '', validUntil: 0 },
  state: 'active',
  isFinal: false,
});
