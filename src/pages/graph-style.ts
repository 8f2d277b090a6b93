/** Style of the drawn graph and the treaty tables, in addition to the shared style. */
import { LABEL_SIZE } from './graph-labels.ts';

export const GRAPH_STYLE = `
.graph { display: grid; gap: 0.75rem; }
.graph-box {
  overflow-x: auto; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius);
  overscroll-behavior-x: contain;
}
.graph-picture { display: block; width: 100%; min-width: 46rem; height: auto; user-select: none; -webkit-user-select: none; }
.js .open .graph-picture { min-width: 0; min-height: min(22rem, 80vh); }
.js .open .graph-box { overflow: hidden; touch-action: pan-y; cursor: grab; }
.js .open .graph-box:active { cursor: grabbing; }
.js .open .graph-box:focus-within { border-color: var(--accent); }
.graph-tools { display: flex; flex-wrap: wrap; align-items: center; justify-content: flex-end; gap: 0.375rem; }
.graph-tools button {
  min-width: 2.75rem; min-height: 2.75rem; padding: 0.25rem 0.5rem; font: 0.875rem var(--sans); color: inherit; cursor: pointer;
  background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px;
}
.graph-tools button:hover { border-color: var(--ink); }
.graph-zoom { min-width: 2.75rem; text-align: center; font-size: 0.875rem; color: var(--muted); }
.graph:fullscreen { grid-template-rows: auto minmax(0, 1fr) auto; padding: 1rem; background: var(--paper); }
.graph:fullscreen .graph-box { touch-action: none; }
.graph:fullscreen .graph-picture { height: 100%; min-height: 0; }
.graph:fullscreen .legend p { display: none; }
.link { fill: none; stroke-width: 1.5; stroke: var(--muted); }
.link.s-active { stroke: var(--ok); }
.link.s-expiring_soon { stroke: var(--warn); stroke-dasharray: 9 4; }
.link.s-expired { stroke: var(--muted); stroke-dasharray: 2 4; }
.link.s-revoked { stroke: var(--danger); stroke-dasharray: 6 3 2 3; }
.link.s-replaced { stroke: var(--muted); stroke-dasharray: 0.5 7; stroke-linecap: round; }
.arrow { fill: var(--muted); stroke: none; }
.arrow.s-active { fill: var(--ok); }
.arrow.s-expiring_soon { fill: var(--warn); }
.arrow.s-revoked { fill: var(--danger); }
.graph-picture :is(.link, circle) { vector-effect: non-scaling-stroke; }
.graph-picture .link { stroke-opacity: 0.75; }
.graph-picture.dense .link { stroke-width: 1; stroke-opacity: 0.4; }
.graph-picture.dense .arrow { opacity: 0.7; }
.graph-picture .link:hover { stroke-width: 3; stroke-opacity: 1; }
.dot { fill: var(--accent); stroke: var(--surface); stroke-width: 1.5; }
.own-ring { fill: var(--surface); stroke: var(--ink); stroke-width: 2; }
.evidence { fill: var(--danger-soft); stroke: var(--danger); stroke-width: 1.5; stroke-dasharray: 3 2; }
.node.own .dot { fill: var(--ink); }
.node text {
  fill: var(--ink); font-family: var(--sans); font-size: calc(${LABEL_SIZE}px / var(--closeness, 1)); paint-order: stroke; stroke: var(--surface);
  stroke-width: 0.27em; stroke-linejoin: round; pointer-events: none;
}
.node:is(.own, .selected, :focus-visible, :hover) text { font-weight: 650; }
.node.crowded text { visibility: hidden; }
.close .node.crowded text { visibility: visible; }
.node.crowded:hover text, .node.crowded:focus text, .node.crowded.lit.near text, .focused .node.crowded.hot text, .node.selected text { visibility: visible; }
.node:hover .dot, .node:focus .dot { stroke: var(--ink); stroke-width: 2.5; }
.node:focus { outline: none; }
.node:focus-visible .dot { stroke: var(--ink); stroke-width: 4; }
.node.selected .dot { fill: var(--warn); stroke: var(--ink); stroke-width: 3; }
.graph-picture:not(.focused) .links .dim, .focused .links .link:not(.hot) { stroke-opacity: 0.1; marker-end: none; }
.graph-picture:not(.focused) .links .lit, .focused .links .hot { stroke-width: 2.5; stroke-opacity: 1; }
:is(.graph-picture:not(.focused) .dim, .focused .node:not(.hot)) :is(.dot, .own-ring, .evidence) { opacity: 0.25; }
:is(.graph-picture:not(.focused) .dim:not(:hover, :focus), .focused .node:not(.hot)) text { visibility: hidden; }
.legend { display: flex; flex-wrap: wrap; align-items: center; gap: 0.375rem 1rem; font-size: 0.875rem; color: var(--muted); }
.legend ul { display: flex; flex-wrap: wrap; gap: 0.375rem 1.25rem; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: 0.5rem; color: var(--ink); }
.legend-title { font-weight: 600; }
.legend p { flex: 1 0 100%; max-width: 60rem; }
.legend .link { stroke-width: 2; }
@media (forced-colors: active) {
  .dot { fill: LinkText; }
  .link { stroke: CanvasText; }
  .node text { fill: CanvasText; stroke: Canvas; }
}
@media print { .graph-picture { min-width: 0; } .graph-tools { display: none; } }
`;
