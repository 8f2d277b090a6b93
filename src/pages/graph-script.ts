/** Highlights a sovereign with its links and neighbors under the pointer and on focus. */
export const HIGHLIGHT_SCRIPT = `(() => {
const enliven = () => {
  const picture = document.querySelector('.graph-picture');
  if (!picture) return;
  const nodes = [...picture.querySelectorAll('.node')];
  const links = [...picture.querySelectorAll('.links .link')];
  const atRest = new Map();
  const remember = () => {
    for (const each of [...nodes, ...links]) atRest.set(each, each.getAttribute('class'));
  };
  remember();
  document.addEventListener('graph-rest', remember);
  const showOnly = (shownNodes, shownLinks) => {
    for (const node of nodes) mark(node, shownNodes.has(node.dataset.node));
    for (const link of links) mark(link, shownLinks.has(link));
  };
  const mark = (element, isLit) => {
    element.classList.toggle('lit', isLit);
    element.classList.toggle('near', isLit);
    element.classList.toggle('dim', !isLit);
  };
  const rest = () => {
    for (const [element, names] of atRest) element.setAttribute('class', names);
  };
  const neighborhood = (node) => {
    const own = node.dataset.node;
    const near = links.filter(({ dataset }) => dataset.from === own || dataset.to === own);
    showOnly(new Set([own, ...near.flatMap(({ dataset }) => [dataset.from, dataset.to])]), new Set(near));
  };
  for (const node of nodes) {
    node.addEventListener('pointerenter', () => neighborhood(node));
    node.addEventListener('focus', () => neighborhood(node));
    node.addEventListener('pointerleave', rest);
    node.addEventListener('blur', rest);
  }
};
enliven();
document.addEventListener('live-update', enliven);
})();
`;
