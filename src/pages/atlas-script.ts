/** Filters the list and the drawing while the reader types; without scripts the form does the same. */
export const ATLAS_SCRIPT = `(() => {
  const search = document.getElementById('q');
  const state = document.getElementById('state');
  const found = document.getElementById('found');
  const rows = [...document.querySelectorAll('#sovereigns tbody tr')];
  if (!search || rows.length === 0) return;
  const nodes = [...document.querySelectorAll('.graph-picture .node')];
  const links = [...document.querySelectorAll('.graph-picture .links .link')];
  const all = found.textContent.replace(/^.* of /, '');
  const narrow = () => {
    const part = search.value.trim().toLowerCase();
    const wanted = state.value;
    const shown = new Set();
    for (const row of rows) {
      const fits = row.dataset.search.includes(part) && (wanted === '' || row.dataset.states.split(' ').includes(wanted));
      row.hidden = !fits;
      if (fits) shown.add(row.dataset.node);
    }
    const isNarrow = part !== '' || wanted !== '';
    for (const node of nodes) step(node, isNarrow && !shown.has(node.dataset.node));
    for (const link of links) {
      const ends = shown.has(link.dataset.from) && shown.has(link.dataset.to);
      step(link, isNarrow && !(ends && (wanted === '' || link.classList.contains('s-' + wanted))));
    }
    found.textContent = shown.size + ' of ' + all;
    document.dispatchEvent(new Event('graph-rest'));
  };
  const step = (element, isBack) => {
    element.classList.remove('lit', 'near');
    element.classList.toggle('dim', isBack);
  };
  search.addEventListener('input', narrow);
  state.addEventListener('change', narrow);
})();
`;
