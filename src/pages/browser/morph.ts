/** Other copies of a page: fetched, and taken over by the one that is shown. */
import { Idiomorph } from 'idiomorph';
import { prepare } from './values.ts';

/** What readers and scripts have changed of an element that stays. */
const OWN_ATTRIBUTES = ['open', 'style', 'tabindex', 'data-value', 'data-current'];

/** Gives an element of the page the form that it has in another copy of the page. */
export function become(shown: Element, fresh: Element): void {
  prepare(fresh);
  Idiomorph.morph(shown, fresh, {
    callbacks: {
      beforeNodeMorphed: (before, after) => !before.isEqualNode(after) && !isFilledIn(before),
      beforeAttributeUpdated: (name) => !OWN_ATTRIBUTES.includes(name),
    },
  });
}

/** What the reader has typed stays, and so does the form around it. */
function isFilledIn(element: Element): boolean {
  return element instanceof HTMLFormElement && element.matches('.ask');
}

/** Fetches a page of this server; null if it is not available now. */
export async function fetchedPage(address: string): Promise<Document | null> {
  try {
    // The browser sends the validator of its copy, and gets no body while that is current.
    const answer = await fetch(address, { cache: 'no-cache' });
    if (!answer.ok) return null;
    return new DOMParser().parseFromString(await answer.text(), 'text/html');
  } catch {
    return null;
  }
}
