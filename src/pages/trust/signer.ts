/** Which key of this authority has signed a record. */
import { instantOf } from '../../protocol/records/record.ts';
import { type Html, html } from '../ui/html.ts';
import { idValue, timeText } from '../ui/values.ts';

/** The key of the authority, and since when it is in force; null for the first one. */
export interface KeyInForce {
  readonly current: string;
  readonly since: string | null;
}

/** After a change of the key, records that were issued before are signed again [authority-keys-10]. */
export function signer(
  { issued_by: id, issued_at: issued }: { readonly issued_by: string; readonly issued_at: string },
  { current, since }: KeyInForce,
): Html {
  const isSignedAgain = id === current && since !== null && instantOf(issued) < instantOf(since);
  if (!isSignedAgain) return idValue(id);
  return html`${idValue(id)} <span class="muted">again, since it replaced the key of the first signature at ${timeText(since)}</span>`;
}
