/** The drawing of a graph, of a part of it where it is too large, or why there is none. */
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

/** `page` is the one that the drawing is on. */
export function graphSection(
  model: DrawnGraph,
  page: keyof typeof INSTEAD,
  emphasis = NO_EMPHASIS,
  selected?: GraphNode,
): Html {
  if (model.nodes.length === 0) {
    return emptyState(
      'The graph is empty. A sovereign appears when a treaty names it, and this authority when it has issued one.',
    );
  }
  if (isTooLarge(model)) {
    return selected === undefined ? tooLarge(model, page) : neighborhood(model, selected);
  }
  return model.drawing === null ? NO_HTML : graphPicture(model.drawing, emphasis);
}

/** What there is in place of a drawing that is too large. */
const INSTEAD = {
  connectome: html`All of its treaties are <a href="#treaties-heading">listed below</a>, page by page; the <a href="./atlas#list-heading">atlas</a> draws each sovereign that is chosen there with those it is linked with.`,
  atlas: html`Choose a sovereign <a href="#list-heading">below</a> to see it drawn with those it is linked with; the <a href="./connectome#treaties-heading">Connectome</a> lists all treaties, page by page.`,
};

function tooLarge(model: GraphModel, page: keyof typeof INSTEAD): Html {
  return html`<p class="notice">With ${sizeOf(model)} the graph is too large to be drawn legibly as a whole (up to ${shownCount(MOST_DRAWN_NODES)} and ${shownCount(MOST_DRAWN_TREATIES)} are). ${INSTEAD[page]}</p>
`;
}

function neighborhood(model: GraphModel, center: GraphNode): Html {
  const { drawing, drawn, all } = neighborhoodOf(model, center);
  const name = html`<bdi>${nameInCell(center.id)}</bdi>`;
  const linked = counted(all, 'sovereign');
  const what =
    drawn === all
      ? html`${name} with the ${linked} that it is linked with.`
      : html`${name} with ${drawn} of the ${linked} that it is linked with: those with treaties in force first, then those with most links. The treaties with the other ${shownCount(all - drawn)} are in the tables of <a href="${sovereignAddress(center.id)}">its own page</a>.`;
  return html`<p class="small muted">${what} The whole graph, with ${sizeOf(model)}, is too large to be drawn legibly.</p>
${graphPicture(drawing, { ...NO_EMPHASIS, selected: center })}`;
}

function sizeOf({ nodes, document }: GraphModel): string {
  return `${counted(nodes.length, 'sovereign')} and ${counted(document.recognition_edges.length, 'treaty', 'treaties')}`;
}
