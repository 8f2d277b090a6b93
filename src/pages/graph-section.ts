/** Draws a graph, or a part of one that is too large, or says why there is no drawing. */
import { shownCount } from './counts.ts';
import { emptyState } from './empty-state.ts';
import { counted, type DrawnGraph, isTooLarge } from './graph-drawing.ts';
import { MOST_DRAWN_NODES, MOST_DRAWN_TREATIES } from './graph-layout.ts';
import type { GraphModel, GraphNode } from './graph-model.ts';
import { nameInCell } from './graph-names.ts';
import { neighborhoodOf } from './graph-neighborhood.ts';
import { graphPicture, NO_EMPHASIS } from './graph-picture.ts';
import { type Html, html, NO_HTML } from './html.ts';
import { sovereignAddress } from './values.ts';

/** `page` names the page that contains the section. */
export function graphSection(
  model: DrawnGraph,
  page: keyof typeof INSTEAD,
  emphasis = NO_EMPHASIS,
  selected?: GraphNode,
): Html {
  if (model.nodes.length === 0) {
    return emptyState(
      'The graph is empty. A sovereign appears once a treaty names it; this authority appears once it has issued one.',
    );
  }
  if (isTooLarge(model)) {
    return selected === undefined ? tooLarge(model, page) : neighborhood(model, selected);
  }
  return model.drawing === null ? NO_HTML : graphPicture(model.drawing, emphasis);
}

/** Where to look when the graph is too large to draw. */
const INSTEAD = {
  connectome: html`All of its treaties are <a href="#treaties-heading">listed below</a>, page by page; the <a href="./atlas#list-heading">atlas</a> draws the neighborhood of a chosen sovereign.`,
  atlas: html`Choose a sovereign <a href="#list-heading">below</a> to see its neighborhood; the <a href="./connectome#treaties-heading">Connectome</a> lists all treaties, page by page.`,
};

function tooLarge(model: GraphModel, page: keyof typeof INSTEAD): Html {
  return html`<p class="notice">With ${sizeOf(model)} the graph is too large to draw legibly (the limits are ${shownCount(MOST_DRAWN_NODES)} and ${shownCount(MOST_DRAWN_TREATIES)}). ${INSTEAD[page]}</p>
`;
}

function neighborhood(model: GraphModel, center: GraphNode): Html {
  const { drawing, drawn, all } = neighborhoodOf(model, center);
  const name = html`<bdi>${nameInCell(center.id)}</bdi>`;
  const linked = counted(all, 'sovereign');
  const what =
    drawn === all
      ? html`${name} and the ${linked} linked with it.`
      : html`${name} and ${drawn} of the ${linked} linked with it: first those with treaties in force, then those with the most links. Treaties with the other ${shownCount(all - drawn)} are in the tables on <a href="${sovereignAddress(center.id)}">its own page</a>.`;
  return html`<p class="small muted">${what} The whole graph, with ${sizeOf(model)}, is too large to draw legibly.</p>
${graphPicture(drawing, { ...NO_EMPHASIS, selected: center })}`;
}

function sizeOf({ nodes, document }: GraphModel): string {
  return `${counted(nodes.length, 'sovereign')} and ${counted(document.recognition_edges.length, 'treaty', 'treaties')}`;
}
