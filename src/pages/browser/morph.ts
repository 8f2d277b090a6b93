import { Idiomorph } from 'idiomorph';
import { prepare } from './values.ts';

/** What readers and scripts have changed of an element that stays. */
const OWN_ATTRIBUTES = ['open', 'style', 'data-value', 'data-current'];

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
