/** What a machine emits instead of changing state: the name of a refusal in the refusal table. */
export interface Refused<Name extends string> {
  readonly type: 'refused';
  readonly refusal: Name;
  /** The true reason, for the audit log; the answer may be less specific. */
  readonly reason?: string;
}

export function refused<const Name extends string>(refusal: Name, reason?: string): Refused<Name> {
  return reason === undefined ? { type: 'refused', refusal } : { type: 'refused', refusal, reason };
}
