/** Runs in the head of every page, so that the chosen theme applies before anything is drawn. */

type Theme = 'light' | 'dark';

const STORED_AS = 'mesh-theme';

const root = document.documentElement;
const prefersDark = matchMedia('(prefers-color-scheme: dark)');

root.classList.add('js');
const chosen = stored();
if (chosen !== null) root.dataset.theme = chosen;
document.addEventListener('DOMContentLoaded', () => {
  showSwitch();
  listenForSearch();
});

function showSwitch(): void {
  const button = document.querySelector<HTMLElement>('[data-theme-toggle]');
  const label = document.querySelector('[data-theme-label]');
  if (button === null || label === null) return;
  const name = () => {
    label.textContent = `Switch to ${otherTheme()} theme`;
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    const theme = otherTheme();
    root.dataset.theme = theme;
    store(theme);
    name();
  });
  prefersDark.addEventListener('change', name);
  name();
}

/** `/` and Ctrl-K lead to the search. */
function listenForSearch(): void {
  addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    const isTyping = target instanceof Element && target.matches('input, select, textarea');
    const isCommand = ctrlKey || metaKey;
    if (altKey || !(isCommand ? key === 'k' : key === '/' && !isTyping)) return;
    event.preventDefault();
    const field = document.querySelector<HTMLElement>('[data-search-field]');
    if (field === null) document.querySelector<HTMLElement>('[data-search]')?.click();
    else field.focus();
  });
}

function otherTheme(): Theme {
  const current = root.dataset.theme ?? (prefersDark.matches ? 'dark' : 'light');
  return current === 'dark' ? 'light' : 'dark';
}

/** Browsers can refuse storage. */
function stored(): Theme | null {
  try {
    const theme = localStorage.getItem(STORED_AS);
    return theme === 'light' || theme === 'dark' ? theme : null;
  } catch {
    return null;
  }
}

function store(theme: Theme): void {
  try {
    localStorage.setItem(STORED_AS, theme);
  } catch {
    // Without storage the theme applies to this page only.
  }
}
