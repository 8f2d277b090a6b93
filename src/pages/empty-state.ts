import { type Html, html } from './html.ts';

/** Says why there is nothing to show. */
export function emptyState(text: string): Html {
  return html`<p class="empty">${text}</p>
`;
}
