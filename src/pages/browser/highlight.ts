/**
 * Highlights a sovereign with its links and neighbors under the pointer and on focus. The listeners are on the
 * document, so that they also apply to what live updates draw.
 */
export function highlightNeighbors(): void {
  const ask = ({ target }: Event) => {
    const node =
      target instanceof Element ? target.closest<SVGElement>('.graph-picture .node') : null;
    if (node === null) rest();
    else light(node);
  };
  document.addEventListener('pointerover', ask);
  document.addEventListener('focusin', ask);
  document.addEventListener('focusout', rest);
  document.addEventListener('live-update', () => {
    const focused = document.activeElement?.closest<SVGElement>('.graph-picture .node');
    if (focused) light(focused);
  });
}

function light(node: SVGElement): void {
  const picture = node.closest('.graph-picture');
  if (picture === null) return;
  const own = node.dataset.key;
  const near = new Set([own]);
  for (const link of picture.querySelectorAll<SVGElement>('.links .link')) {
    const [from, to] = endsOf(link);
    const isNear = from === own || to === own;
    link.classList.toggle('hot', isNear);
    if (isNear) near.add(from).add(to);
  }
  for (const each of picture.querySelectorAll<SVGElement>('.node')) {
    each.classList.toggle('hot', near.has(each.dataset.key));
  }
  picture.classList.add('focused');
}

/** The keys of the two nodes that the link connects. */
export function endsOf({ dataset: { key = '' } }: SVGElement): readonly string[] {
  return key.split('-');
}

function rest(): void {
  document.querySelector('.graph-picture.focused')?.classList.remove('focused');
}
