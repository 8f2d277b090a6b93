import { listenForKeys } from './console-keys.ts';
import { addBlockButtons } from './copy.ts';
import { keepLive } from './live.ts';
import { otherTheme } from './theme.ts';
import { prepareValues } from './values.ts';

document.documentElement.classList.add('js');
exchangeToken();
switchThemeInPlace();
prepareValues();
addBlockButtons('pre.code');
listenForKeys();
keepLive();
beginAtContent();
showCurrentPage();

/** The token is in the fragment, which browsers send to nobody; it leaves the address before it is used. */
function exchangeToken(): void {
  const form = document.querySelector<HTMLFormElement>('[data-token-form]');
  const field = form?.querySelector<HTMLInputElement>('#token');
  const token = location.hash.slice(1);
  if (!form || !field || token === '') return;
  history.replaceState(null, '', location.pathname);
  field.value = token;
  form.submit();
}

/** Who has just asked for a change, or made one, need not go through the navigation again to read on. */
function beginAtContent(): void {
  if (document.querySelector('.confirm, [data-outcome]') === null) return;
  document.querySelector<HTMLElement>('main')?.focus();
}

/** On a phone, the navigation is one line, of which only a part is seen. */
function showCurrentPage(): void {
  const current = document.querySelector('.pages [aria-current]');
  current?.scrollIntoView({ block: 'nearest', inline: 'center', behavior: 'instant' });
}

/** What was typed stays. The server learns of it, for the next page. */
function switchThemeInPlace(): void {
  const form = document.querySelector<HTMLFormElement>('[data-theme-form]');
  form?.addEventListener('submit', (event) => {
    event.preventDefault();
    const theme = otherTheme();
    document.documentElement.dataset.theme = theme;
    const body = new URLSearchParams({ theme });
    void fetch(form.action, { method: 'POST', body, redirect: 'manual' });
  });
}
