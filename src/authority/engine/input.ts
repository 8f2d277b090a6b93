import type { Input } from '../../contract/claims.ts';
import { Refusal } from '../../refusal.ts';

/** The value of a body that passed its schema; refuses with what the edge found otherwise. */
export function accept<T>(input: Input<T>): T {
  if (input.ok) return input.value;
  throw new Refusal(input.refusal, input.details);
}
