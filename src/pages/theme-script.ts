import { inlineCode } from './inline-code.ts';

/** In the head of every page, so that a chosen theme applies before anything is drawn. */
export const THEME_SCRIPT = inlineCode(`(() => {
  const root = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const kept = () => { try { return localStorage.getItem('mesh-theme'); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem('mesh-theme', theme); } catch {} };
  const chosen = kept();
  root.classList.add('js');
  if (chosen === 'light' || chosen === 'dark') root.dataset.theme = chosen;
  const current = () => root.dataset.theme ?? (dark.matches ? 'dark' : 'light');
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.querySelector('[data-theme-toggle]');
    const label = document.querySelector('[data-theme-label]');
    const tell = () => {
      label.textContent = current() === 'dark' ? 'Switch to light theme' : 'Switch to dark theme';
    };
    button.hidden = false;
    button.addEventListener('click', () => {
      root.dataset.theme = current() === 'dark' ? 'light' : 'dark';
      keep(root.dataset.theme);
      tell();
    });
    dark.addEventListener('change', tell);
    tell();
  });
})();`);
