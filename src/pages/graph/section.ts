/** The drawing of each page of the graph. */
import { counted, shownCount } from '../../base/counts.ts';
import { type Html, html } from '../ui/html.ts';
import { nameInCell } from '../ui/names.ts';
import { emptyState, TO_ISSUE } from '../ui/parts.ts';
import { sovereignAddress } from '../ui/values.ts';
import { type DrawnGraph, isTooLarge } from './drawing.ts';
import { MOST_DRAWN_NODES, MOST_DRAWN_TREATIES } from './layout.ts';
import type { GraphModel, GraphNode } from './model.ts';
import { neighborhoodOf } from './neighborhood.ts';
import { type Emphasis, graphPicture, NO_EMPHASIS } from './picture.ts';

/** The picture of `/connectome`, in which every sovereign leads to the atlas. */
export function stillGraph(model: DrawnGraph): Html {
  if (isTooLarge(model)) return tooLarge(model);
  return model.drawing === null ? EMPTY : graphPicture(model.drawing, null);
}

/** The drawing of `/atlas`: the whole graph or, where that is too large, the neighborhood of `center`. */
export function graphToExplore(model: DrawnGraph, emphasis: Emphasis, center?: GraphNode): Html {
  if (center !== undefined && isTooLarge(model)) return neighborhood(model, center);
  return model.drawing === null ? EMPTY : graphPicture(model.drawing, emphasis);
}

const EMPTY = emptyState(
  'The graph is empty. A sovereign appears once a treaty names it:',
  TO_ISSUE,
);

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
