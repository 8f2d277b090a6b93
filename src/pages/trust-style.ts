export const TRUST_STYLE = `
.left-out { grid-column: 1 / -1; min-width: 0; margin: 0; padding: 0; border: 0; display: grid; gap: 0.25rem; }
.left-out legend { padding: 0; font-size: 0.875rem; color: var(--muted); }
.left-out label { display: flex; align-items: center; gap: 0.5rem; min-height: 1.75rem; }
.left-out input { flex: none; min-height: 0; width: 1.125rem; height: 1.125rem; }
.treaties { display: grid; gap: 0; padding: 0; list-style: none; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.treaties li { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.125rem; padding: 0.75rem 1rem; border-bottom: 1px solid var(--line); }
.treaties li:last-child { border-bottom: 0; }
`;
