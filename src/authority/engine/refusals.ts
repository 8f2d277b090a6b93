import type { Refused } from '../../../machines/refused.ts';
import type { Emitted } from '../../../machines/step.ts';

/** The refusal that a machine emitted, or null when it accepted the event. */
export function refusalIn<Name extends string>(emitted: readonly Emitted[]): Refused<Name> | null {
  const refused = emitted.find(({ type }) => type === 'refused');
  return refused === undefined ? null : (refused as Refused<Name>);
}
