/** Drawings of the history. Curves differ in their dashes as well as in their colors. */
export const HISTORY_STYLE = `
#history:empty { display: none; }
.ranges { display: flex; flex-wrap: wrap; gap: 0.25rem; padding: 0; list-style: none; }
.ranges a { display: block; padding: 0.375rem 0.75rem; border-radius: 6px; font-size: 0.875rem; text-decoration: none; }
.ranges a[aria-current] { background: var(--accent-soft); font-weight: 600; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1rem; }
.chart { display: grid; align-content: start; grid-template-columns: minmax(0, 1fr); gap: 0.375rem; padding: 0.75rem 1rem; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.legend { display: flex; flex-wrap: wrap; gap: 0.125rem 1.25rem; padding: 0; list-style: none; font-size: 0.8125rem; color: var(--muted); }
.legend svg { width: 1.5rem; height: 0.25rem; margin-inline-end: 0.375rem; vertical-align: middle; }
figcaption::after { content: attr(data-values) "\\00a0"; display: block; color: var(--muted); font-size: 0.8125rem; line-height: 1.2; }
.charts .legend { display: block; min-height: 3lh; }
.plot { display: block; width: 100%; height: 8rem; border-bottom: 1px solid var(--line-strong); overflow: visible; }
.plot path, .legend path { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
.curve-0, .curve-0 path { stroke: var(--accent); }
.curve-1, .curve-1 path { stroke: var(--warn); stroke-dasharray: 7 3; }
.curve-2, .curve-2 path { stroke: var(--danger); stroke-dasharray: 2 3; }
.plot .gap { fill: var(--sunken); }
.plot .mark { stroke: var(--muted); stroke-width: 1; }
.plot .cross { stroke: var(--ink); stroke-width: 1; }
.chart-times { display: flex; font-size: 0.75rem; color: var(--muted); }
.chart-times span { flex: 1 1 0; }
.decisions { padding-inline-start: 1.25rem; }
.numbers summary { cursor: pointer; padding-block: 0.375rem; }
.numbers-box { max-height: 24rem; overflow: auto; }
.numbers th, .numbers td { text-align: end; white-space: nowrap; }
.numbers th:first-child { text-align: start; }
.numbers thead th { white-space: normal; min-width: 6rem; vertical-align: bottom; }
`;
