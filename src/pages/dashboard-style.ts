/** The dashboard is also read from across a room, so its figures grow with the screen. */
export const DASHBOARD_STYLE = `
.posture {
  display: grid; gap: 0.5rem; padding: clamp(1rem, 2vw, 1.75rem) clamp(1.25rem, 2.5vw, 2rem);
  border: 1px solid currentColor; border-left-width: 8px; border-radius: var(--radius);
}
.posture.ok { background: var(--ok-soft); color: var(--ok); }
.posture.warn { background: var(--warn-soft); color: var(--warn); }
.posture.danger { background: var(--danger-soft); color: var(--danger); }
.posture-word { font-size: clamp(1.5rem, 1.1rem + 1.6vw, 2.5rem); }
.posture-reasons { padding-inline-start: 1.25rem; color: var(--ink); }
.figures { grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); }
.figures .card { border-top: 4px solid var(--line-strong); }
.figures .card.tone-ok { border-top-color: var(--ok); }
.figures .card.tone-warn { border-top-color: var(--warn); }
.figures .card.tone-danger { border-top-color: var(--danger); }
.card.tone-danger .card-value { color: var(--danger); }
.card.tone-warn .card-value { color: var(--warn); }
.figures .card-value { font-size: clamp(1.75rem, 1.3rem + 1.2vw, 2.5rem); overflow-wrap: normal; }
.bar { display: block; width: 100%; height: 12px; border-radius: 6px; background: var(--sunken); }
.bar .tone-ok { fill: var(--ok); }
.bar .tone-warn { fill: var(--warn); }
.bar .tone-danger { fill: var(--danger); }
.bar .s-expired { fill: var(--muted); }
.bar .s-replaced { fill: var(--line-strong); }
.states { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; padding: 0; list-style: none; }
.state-count { font-weight: 650; }
.name { overflow-wrap: anywhere; min-width: 10rem; max-width: 24rem; }
.name a { color: inherit; }
.changes { display: grid; padding: 0; list-style: none; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.changes > li { display: grid; gap: 0.25rem; padding: 0.75rem 1rem; border-bottom: 1px solid var(--line); }
.changes > li:last-child { border-bottom: 0; }
.change-head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.25rem 0.75rem; }
.change-head time { margin-inline-start: auto; color: var(--muted); font-size: 0.875rem; }
.change-facts { display: flex; flex-wrap: wrap; gap: 0.125rem 1.5rem; font-size: 0.875rem; }
.change-facts div { display: flex; gap: 0.5rem; min-width: 0; }
.change-facts dt { color: var(--muted); white-space: nowrap; }
.change-facts dd { min-width: 0; }
td.id { min-width: 12rem; }
td.number.id { min-width: 0; }
@media (max-width: 30rem) {
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0.625rem; }
  .figures .card { padding: 0.75rem; }
  .figures .card-value { font-size: 1.375rem; }
}
@media (min-width: 100rem) {
  main, .top-row, .bottom { max-width: 110rem; }
  .figures { grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); }
}
`;
