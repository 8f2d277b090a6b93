/** An invite as operators see it, never with its token [core-4-18]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';
import { DescriptionMembers } from './node-description.ts';

export const INVITE_STATUSES = ['unused', 'consumed', 'expired', 'withdrawn'] as const;

/** Printable ASCII, with spaces only in the middle. */
const BATCH = /^[!-~](?:[ -~]{0,62}[!-~])?$/;

/** The label of a batch of invites. */
export const BatchLabel = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: BATCH.source,
  description: 'Printable ASCII without a space at either end',
});

export function isBatchLabel(text: string): boolean {
  return BATCH.test(text);
}

/** The name for the node with the token of this number; `{n}` stands for the number. */
export function numberedName(name: string, number: number): string {
  return name.replaceAll('{n}', String(number));
}

export const InviteRow = Type.Object({
  token_fingerprint: Type.String(),
  status: Type.Enum([...INVITE_STATUSES]),
  /** The batch in which the invite was created. */
  batch: Type.Union([Type.String(), Type.Null()]),
  /** What the node will be called. */
  name: DescriptionMembers.name,
  labels: DescriptionMembers.labels,
  roles: Type.Array(Type.String()),
  max_validity_hours: Type.Integer(),
  /** The only node key that may use the invite. */
  recipient_public_key: Type.Union([Type.String(), Type.Null()]),
  created_at: Datetime,
  expires_at: Datetime,
  used_at: Type.Union([Datetime, Type.Null()]),
  /** The node key that joined with the invite. */
  used_by: Type.Union([Type.String(), Type.Null()]),
  withdrawn_at: Type.Union([Datetime, Type.Null()]),
  /** The operator key that withdrew the invite. */
  withdrawn_by: Type.Union([Type.String(), Type.Null()]),
});

export type InviteRow = Static<typeof InviteRow>;
export type InviteStatus = InviteRow['status'];

/** The command with which a machine joins by an invite, whose token is in the file. */
export function joinCommand(url: string, rootKey: string, tokenFile: string): string {
  return `mesh-na node join --url ${url} --root-key ${rootKey} --token-file ${tokenFile}`;
}
