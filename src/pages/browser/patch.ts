/**
 * Applies the operations of a live update. Unchanged elements are kept, so that focus, selection and scroll position
 * survive.
 */
import type { KeyPath, Operation } from '../live-patch.ts';

/** Returns false when an element is missing: the patch is then for another version of the page. */
export function applyPatch(region: Element, patch: readonly Operation[]): boolean {
  const children = new Map<Element, Map<string, Element>>();

  function childrenOf(parent: Element): Map<string, Element> {
    const known = children.get(parent) ?? keyedChildren(parent);
    children.set(parent, known);
    return known;
  }

  function find(path: KeyPath): Element | undefined {
    let found: Element | undefined = region;
    for (const key of path) found = found && childrenOf(found).get(key);
    return found;
  }

  function carryOut([kind, path, ...rest]: Operation): boolean {
    const element = find(path);
    const container = kind === 'add' ? element : find(path.slice(0, -1));
    if (element === undefined || container === undefined) return false;
    const [first = null, markup = ''] = rest;
    if (kind === 'set') {
      const fresh = parsed(first ?? '', container);
      if (fresh === null) return false;
      if (fresh.nodeName === element.nodeName) become(element, fresh);
      else element.replaceWith(fresh);
      children.clear();
    } else if (kind === 'remove') {
      element.remove();
      childrenOf(container).delete(path.at(-1) ?? '');
    } else {
      const before = first === null ? null : childrenOf(container).get(first);
      const moved = kind === 'add' ? parsed(markup, container) : element;
      if (before === undefined || moved === null) return false;
      container.insertBefore(moved, before);
      childrenOf(container).set(moved.getAttribute('data-key') ?? '', moved);
    }
    return true;
  }

  return patch.every(carryOut);
}

/** The outermost keyed elements inside the parent. */
function keyedChildren(parent: Element): Map<string, Element> {
  const found = new Map<string, Element>();
  for (const element of parent.querySelectorAll('[data-key]')) {
    if (element.parentElement?.closest('[data-key], [data-live]') !== parent) continue;
    found.set(element.getAttribute('data-key') ?? '', element);
  }
  return found;
}

/** Parses the element in the context of its container, because drawings contain SVG elements. */
function parsed(markup: string, container: Element): Element | null {
  const template = document.createElement('template');
  const isDrawing = container instanceof SVGElement;
  template.innerHTML = isDrawing ? `<svg>${markup}</svg>` : markup;
  const first = template.content.firstElementChild;
  return isDrawing ? (first?.firstElementChild ?? null) : first;
}

/** Gives `shown` the content of `fresh`. */
export function becomeInside(shown: Element, fresh: Element): void {
  const wanted = [...fresh.childNodes];
  for (const [index, node] of wanted.entries()) {
    const present = shown.childNodes[index];
    if (present === undefined) shown.append(node);
    else if (present.nodeName !== node.nodeName) present.replaceWith(node);
    else if (present instanceof Element && node instanceof Element) become(present, node);
    else if (present.nodeValue !== node.nodeValue) present.nodeValue = node.nodeValue;
  }
  while (shown.childNodes.length > wanted.length) shown.lastChild?.remove();
}

function become(shown: Element, fresh: Element): void {
  for (const { name } of [...shown.attributes]) {
    // What the reader has opened stays open.
    if (name !== 'open' && !fresh.hasAttribute(name)) shown.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
  becomeInside(shown, fresh);
}
