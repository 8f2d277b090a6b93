/** What every machine emits instead of changing state: a refusal, by its name in the refusal table. */
export interface Refused<Name extends string> {
  readonly type: 'refused';
  readonly refusal: Name;
  /** The true reason, for the audit log; answers may be vaguer. */
  readonly reason?: string;
}
