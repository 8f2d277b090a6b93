/** Bars, small lines, changes and tables of the dashboard. */
export const DASHBOARD_STYLE = `
.spark { grid-area: 1 / 2 / 3; }
.spark svg { display: block; width: 6rem; height: 1.75rem; overflow: visible; }
.spark path { fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.bar { display: block; width: 100%; height: 12px; border-radius: 6px; background: var(--sunken); }
.bar rect { fill: var(--tone, var(--muted)); }
.bar .s-replaced { fill: var(--line-strong); }
.states { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; padding: 0; list-style: none; }
.state-count { font-weight: 650; }
.changes { display: grid; padding: 0; list-style: none; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.changes > li { display: grid; gap: 0.125rem; padding: 0.5rem 1rem; border-bottom: 1px solid var(--line); }
.changes > li:last-child { border-bottom: 0; }
.change-head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.25rem 0.75rem; }
.change-head time { margin-inline-start: auto; color: var(--muted); font-size: 0.875rem; }
@media (max-width: 36rem) { .change-head time { flex-basis: 100%; margin: 0; } }
.change-facts { display: flex; flex-wrap: wrap; gap: 0.125rem 1.5rem; font-size: 0.875rem; }
.change-facts div { display: flex; gap: 0.5rem; min-width: 0; }
.change-facts dt { color: var(--muted); white-space: nowrap; }
.change-facts dd { min-width: 0; }
@media (max-width: 60rem) {
  #roles tbody tr { grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 0.125rem 0.5rem; }
  #roles tbody tr > * { display: block; }
  #roles tbody th { grid-column: 1 / -1; }
  #roles tbody th::before { content: none; }
  #roles tbody td::before { display: block; font-size: 0.75rem; }
}
@media (min-width: 100rem) {
  main, .top-row, .bottom { max-width: 110rem; }
}
`;
