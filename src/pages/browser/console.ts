import { keepLive } from './live.ts';
import { otherTheme } from './theme.ts';
import { addBlockButtons, prepareValues } from './values.ts';

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

/** `/` searches, `j` and `k` go through the rows of the first table, Enter opens the row, `?` shows the keys. */
function listenForKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (act(event.key)) event.preventDefault();
  });
}

function act(key: string): boolean {
  if (key === '/') return focusOn(document.querySelector<HTMLInputElement>('#q'));
  if (key === 'j') return moveBy(1);
  if (key === 'k') return moveBy(-1);
  if (key === '?') return showKeys();
  return false;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select') !== null;
}

function focusOn(field: HTMLInputElement | null): boolean {
  field?.focus();
  field?.select();
  return field !== null;
}

/**
 * The link of the row is focused, so that Enter opens it, and a reader hears what it is. A row without one is focused
 * itself: Enter must not open another row, and Tab leads to what can be done about this one.
 */
function moveBy(step: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('main table tbody tr')];
  if (rows.length === 0) return false;
  const before = rows.findIndex((row) => row.dataset.current !== undefined);
  const next = before < 0 ? 0 : Math.min(Math.max(before + step, 0), rows.length - 1);
  for (const row of rows) delete row.dataset.current;
  const row = rows[next];
  if (row === undefined) return false;
  row.dataset.current = '';
  const link = row.querySelector<HTMLElement>('a:not(.button)');
  if (link === null) row.tabIndex = -1;
  (link ?? row).focus();
  row.scrollIntoView({ block: 'nearest' });
  return true;
}

function showKeys(): boolean {
  const dialog = document.querySelector<HTMLDialogElement>('[data-keys]');
  if (dialog === null || dialog.open) return false;
  dialog.showModal();
  return true;
}
