import { type Content, type Html, html } from './html.ts';

export const TO_ISSUE = 'treaty issue NAME --key KEY --role ROLE';
export const TO_IMPORT = 'feed import FILE';

/** Says why there is nothing to show, and which command changes that. */
export function emptyState(text: Content, command?: string): Html {
  const typed = command === undefined ? '' : html` <code>mesh-na ${command}</code>`;
  return html`<p class="empty">${text}${typed}</p>`;
}
