/**
 * Clients choose the host name that they send. A page is therefore not made for it: where no public URL is configured,
 * the page has this name, and its script puts the address of the page in its place.
 */
import { type Html, html, NO_HTML } from './html.ts';

export const ADDRESS_PLACE = 'https://authority.example';

/** For the script, what to replace; for readers without scripts, what to replace themselves. */
export function addressNote(publicUrl: string | null): Html {
  if (publicUrl !== null) return NO_HTML;
  return html`<p class="small muted" data-address="${ADDRESS_PLACE}">Put the address of this page in place of ${ADDRESS_PLACE}.</p>
`;
}
