const STORED_AS = 'mesh-theme';

const root = document.documentElement;
const prefersDark = matchMedia('(prefers-color-scheme: dark)');

/** The chosen theme, and the button that switches it. */
export function chooseTheme(): void {
  root.classList.add('js');
  try {
    const chosen = localStorage.getItem(STORED_AS);
    if (chosen !== null) root.dataset.theme = chosen;
  } catch {
    // Browsers can refuse storage.
  }
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.querySelector('.theme');
    const name = () => button?.setAttribute('aria-label', `Switch to ${otherTheme()} theme`);
    button?.addEventListener('click', () => {
      const theme = otherTheme();
      root.dataset.theme = theme;
      name();
      try {
        localStorage.setItem(STORED_AS, theme);
      } catch {
        // Without storage the theme applies to this page only.
      }
    });
    prefersDark.addEventListener('change', name);
    name();
  });
}

/** `/` and Ctrl-K lead to the search. */
export function listenForSearch(): void {
  addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    const isSearch =
      ctrlKey || metaKey
        ? key === 'k'
        : key === '/' && !(target as Element).matches('input, select, textarea');
    if (altKey || !isSearch) return;
    event.preventDefault();
    const field = document.querySelector<HTMLElement>('[data-search-field]');
    if (field === null) document.querySelector<HTMLElement>('.search-link')?.click();
    else field.focus();
  });
}

/** The one that is not shown now. */
export function otherTheme(): string {
  const current = root.dataset.theme ?? (prefersDark.matches ? 'dark' : 'light');
  return current === 'dark' ? 'light' : 'dark';
}
