export const ATLAS_STYLE = `
.full-name { display: block; max-width: 60rem; }
#selected { padding: clamp(1rem, 2vw, 1.5rem); border: 1px solid var(--line-strong); border-radius: var(--radius); }
#selected:has(> .notice) { padding: 0; border: 0; }
@media (max-width: 30rem) {
  #selected { padding: 0; border: 0; }
  #sovereigns tbody tr > * { grid-template-columns: 6rem minmax(0, 1fr); }
}
.path-result { display: grid; gap: 1.25rem; }
`;
