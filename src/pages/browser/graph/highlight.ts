/** Highlights a sovereign with its links and neighbors under the pointer and on focus. */
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
}

function light(node: SVGElement): void {
  const picture = node.closest('.graph-picture');
  if (picture === null) return;
  const own = indexOf(node);
  const near = new Set<string | undefined>([own]);
  for (const link of picture.querySelectorAll<SVGElement>('.links .link')) {
    const [from, to] = endsOf(link);
    const isNear = from === own || to === own;
    link.classList.toggle('hot', isNear);
    if (isNear) near.add(from).add(to);
  }
  for (const each of picture.querySelectorAll<SVGElement>('.node')) {
    each.classList.toggle('hot', near.has(indexOf(each)));
  }
  picture.classList.add('focused');
}

/** The indexes of the two nodes that the link connects. */
export function endsOf({ id }: SVGElement): readonly string[] {
  return id.split('-').slice(1);
}

export function indexOf({ id }: SVGElement): string {
  return id.replace('node-', '');
}

function rest(): void {
  document.querySelector('.graph-picture.focused')?.classList.remove('focused');
}
