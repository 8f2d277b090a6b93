/** Drawings of the history. Curves differ in their dashes as well as in their colors. */
export const HISTORY_STYLE = `
.ranges { display: flex; flex-wrap: wrap; gap: 0.25rem; padding: 0; list-style: none; }
.ranges a { display: block; padding: 0.375rem 0.75rem; border-radius: 6px; font-size: 0.875rem; text-decoration: none; }
.ranges a[aria-current] { background: var(--accent-soft); font-weight: 600; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; }
.chart { flex: 1 1 min(100%, 21rem); display: flex; flex-direction: column; gap: 0.375rem; min-width: 0; padding: 0.75rem 1rem; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.legend { display: flex; flex-wrap: wrap; gap: 0.125rem 1.25rem; padding: 0; list-style: none; font-size: 0.8125rem; color: var(--muted); }
.legend svg { width: 1.5rem; height: 0.25rem; margin-inline-end: 0.375rem; vertical-align: middle; }
.charts .legend { display: block; flex: 1; }
#history[style] li > span { display: none; }
#history[style] li::after { content: attr(data-value); color: var(--ink); }
.plot { width: 100%; height: 8rem; border-bottom: 1px solid var(--line-strong); overflow: visible; }
.plot path, .legend path { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
.curve-0, .curve-0 path { stroke: var(--accent); }
.curve-1, .curve-1 path { stroke: var(--warn); stroke-dasharray: 7 3; }
.curve-2, .curve-2 path { stroke: var(--danger); stroke-dasharray: 2 3; }
.plot .gap { fill: var(--sunken); }
.plot .mark { stroke: var(--muted); stroke-width: 1; }
.chart-times { position: relative; display: flex; font-size: 0.75rem; color: var(--muted); }
.chart-times span { flex: 1 1 0; }
#history[style] .chart-times span { visibility: hidden; }
#history[style] .chart-times::before { content: var(--time); position: absolute; }
#history[style] .chart-times::after { content: ""; position: absolute; bottom: calc(100% + 0.375rem); height: 8rem; left: var(--at); border-left: 1px solid var(--ink); pointer-events: none; }
.decisions { padding-inline-start: 1.25rem; }
.numbers { max-height: 24rem; overflow: auto; }
.numbers caption { max-width: calc(100vw - 4rem); }
.numbers th, .numbers td { text-align: end; white-space: nowrap; }
.numbers th:first-child { text-align: start; }
.numbers thead th { white-space: normal; min-width: 6rem; vertical-align: bottom; }
`;
