/** The drawing that the pages of the graph share. */
import { counted, shownCount } from './counts.ts';
import { emptyState, TO_ISSUE } from './empty-state.ts';
import { type DrawnGraph, isTooLarge } from './graph-drawing.ts';
import { MOST_DRAWN_NODES, MOST_DRAWN_TREATIES } from './graph-layout.ts';
import type { GraphModel, GraphNode } from './graph-model.ts';
import { nameInCell } from './graph-names.ts';
import { neighborhoodOf } from './graph-neighborhood.ts';
import { graphPicture, NO_EMPHASIS } from './graph-picture.ts';
import { type Html, html, NO_HTML } from './html.ts';
import { sovereignAddress } from './values.ts';

/**
 * The drawing of `/connectome` and `/atlas`: the whole graph or, where that is too large, the neighborhood of `center`.
 * The Connectome has none, so that a change of a large graph is a small message to its viewers.
 */
export function graphSection(model: DrawnGraph, emphasis = NO_EMPHASIS, center?: GraphNode): Html {
  if (model.nodes.length === 0) {
    return emptyState('The graph is empty. A sovereign appears once a treaty names it:', TO_ISSUE);
  }
  if (isTooLarge(model)) {
    return center === undefined ? tooLarge(model) : neighborhood(model, center);
  }
  return model.drawing === null ? NO_HTML : graphPicture(model.drawing, emphasis);
}

function tooLarge(model: GraphModel): Html {
  return html`<p class="notice">With ${sizeOf(model)} the graph is too large to draw legibly (the limits are ${shownCount(MOST_DRAWN_NODES)} and ${shownCount(MOST_DRAWN_TREATIES)}). All of its treaties are <a href="#treaties-heading">listed below</a>, page by page; the <a href="./atlas">atlas</a> draws this authority, or another sovereign, and those linked with it.</p>`;
}

function neighborhood(model: GraphModel, center: GraphNode): Html {
  const { drawing, drawn, all } = neighborhoodOf(center);
  const name = html`<bdi>${nameInCell(center.id)}</bdi>`;
  const linked = counted(all, 'sovereign');
  const what =
    drawn === all
      ? html`${name} and the ${linked} linked with it.`
      : html`${name} and ${drawn} of the ${linked} linked with it: first those with treaties in force, then those with the most links. Treaties with the other ${shownCount(all - drawn)} are in the tables on <a href="${sovereignAddress(center.id)}">its own page</a>.`;
  return html`<p class="small muted">${what} The whole graph, with ${sizeOf(model)}, is too large to draw legibly: choose another sovereign in the drawing or <a href="#list-heading">below</a>.</p>
${graphPicture(drawing, { ...NO_EMPHASIS, selected: center })}`;
}

function sizeOf({ nodes, document }: GraphModel): string {
  return `${counted(nodes.length, 'sovereign')} and ${counted(document.recognition_edges.length, 'treaty', 'treaties')}`;
}
