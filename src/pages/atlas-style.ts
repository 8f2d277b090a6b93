export const ATLAS_STYLE = `
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
