/** Runs in the head of every page, so that the chosen theme applies before anything is drawn. */
import { offerSearch } from './search.ts';

type Theme = 'light' | 'dark';

const STORED_AS = 'mesh-theme';

const root = document.documentElement;
const prefersDark = matchMedia('(prefers-color-scheme: dark)');

root.classList.add('js');
const chosen = stored();
if (chosen !== null) root.dataset.theme = chosen;
document.addEventListener('DOMContentLoaded', () => {
  showSwitch();
  offerSearch();
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
