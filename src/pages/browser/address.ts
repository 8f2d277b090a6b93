/** Shows the address of this page where the page, which is the same for all readers, has a name in its place. */
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

/** The commands go to a shell: characters that mean something there do not. */
const PLAIN = /^[\w.~/-]*$/;

function ownAddress(): string {
  const { origin, pathname } = new URL('.', location.href);
  return PLAIN.test(pathname) ? origin + pathname.replace(/\/$/, '') : origin;
}
