export const ATLAS_STYLE = `
.ask { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr)); gap: 0.75rem 1rem; align-items: end; }
.field { display: grid; gap: 0.25rem; }
.field:has(button) { display: flex; align-items: center; gap: 1rem; }
.field label { font-size: 0.875rem; color: var(--muted); }
.ask input[type="text"] {
  width: 100%; padding: 0.5rem 0.75rem; font: inherit; color: inherit;
  background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px;
}
.ask button {
  padding: 0.5rem 1.25rem; font: inherit; font-weight: 600; color: var(--surface); cursor: pointer;
  background: var(--accent); border: 1px solid var(--accent); border-radius: 6px;
}
.ask input, .ask select, .ask button { min-height: 2.75rem; }
.full-name { display: block; max-width: 60rem; }
#selected { scroll-margin-top: 5rem; padding: clamp(1rem, 2vw, 1.5rem); border: 1px solid var(--line-strong); border-radius: var(--radius); }
#selected:focus { outline: none; }
.path-steps { display: grid; gap: 0; padding: 0; list-style: none; counter-reset: step; }
.path-steps li { position: relative; padding: 0 0 1.25rem 2.5rem; counter-increment: step; }
.path-steps li::before {
  content: counter(step); position: absolute; left: 0; top: 0; width: 1.625rem; height: 1.625rem;
  border-radius: 50%; background: var(--accent); color: var(--surface); font-size: 0.8125rem; font-weight: 650;
  display: grid; place-items: center;
}
.path-steps li:not(:last-child)::after {
  content: ""; position: absolute; left: 0.75rem; top: 1.875rem; bottom: 0.25rem; width: 2px; background: var(--line-strong);
}
.path-result { display: grid; gap: 1.25rem; }
`;
