/**
 * Clients choose the Host header that they send, so pages are not rendered for it. Where no public URL is configured,
 * the page shows this placeholder, and its script replaces it with the address of the page.
 */
import { type Html, html, NO_HTML } from './html.ts';

export const ADDRESS_PLACE = 'https://authority.example';

/** Names the placeholder, for the script and for readers without scripts. */
export function addressNote(publicUrl: string | null): Html {
  if (publicUrl !== null) return NO_HTML;
  return html`<p class="small muted" data-address="${ADDRESS_PLACE}">Replace ${ADDRESS_PLACE} with the address of this page.</p>`;
}
