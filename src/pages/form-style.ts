/** Style of search and filter forms. */
export const FORM_STYLE = `
.ask { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr)); gap: 0.75rem 1rem; align-items: end; }
.field { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.25rem; }
.field:has(button) { display: flex; align-items: center; gap: 1rem; }
.field label { font-size: 0.875rem; color: var(--muted); }
.ask input[type="text"], .ask input[type="datetime-local"] {
  width: 100%; padding: 0.5rem 0.75rem; font: inherit; color: inherit;
  background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px;
}
.ask button {
  padding: 0.5rem 1.25rem; font: inherit; font-weight: 600; color: var(--surface); cursor: pointer;
  background: var(--accent); border: 1px solid var(--accent); border-radius: 6px;
}
.ask input, .ask select, .ask button { min-height: 2.75rem; }
`;
