/** Replaces the placeholder host name: the page itself is the same for all readers. */
export function showAddress(): void {
  const note = document.querySelector<HTMLElement>('[data-address]');
  const place = note?.dataset.address;
  if (place === undefined) return;
  for (const shown of document.querySelectorAll('pre.code, bdi')) {
    const text = shown.textContent ?? '';
    if (text.includes(place)) shown.textContent = text.replaceAll(place, ownAddress());
  }
  note?.remove();
}

/** Readers paste these commands into a shell, so the path must not contain shell metacharacters. */
const PLAIN = /^[\w.~/-]*$/;

function ownAddress(): string {
  const { origin, pathname } = new URL('.', location.href);
  return PLAIN.test(pathname) ? origin + pathname.replace(/\/$/, '') : origin;
}
