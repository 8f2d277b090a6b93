import { copy } from './copy.ts';

const SHOWN_FOR_MS = 2000;

/** Makes the copy buttons work, also those that come later. */
export function offerCopies(): void {
  if (document.querySelector('.id, [data-live]') === null) return;
  const status = document.createElement('p');
  status.className = 'visually-hidden';
  status.setAttribute('role', 'status');
  document.querySelector('main')?.append(status);
  document.addEventListener('click', async ({ target }) => {
    const button = target instanceof Element ? target.closest('.copy-id') : null;
    const holder = button?.parentElement;
    if (!button || !holder) return;
    const isCopied = await copy(holder, textOf(holder));
    status.textContent = isCopied ? 'Copied' : 'Select the text to copy it';
    button.toggleAttribute('data-copied', isCopied);
    setTimeout(() => {
      status.textContent = '';
      button.removeAttribute('data-copied');
    }, SHOWN_FOR_MS);
  });
}

const COPIED = '.id:not(.number), .posture code';

/** Gives each id, key and command about a finding a copy button. */
export function addIdButtons(root: ParentNode): void {
  for (const holder of root.querySelectorAll(COPIED)) {
    if (holder.querySelector('.copy-id') !== null || textOf(holder) === '') continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy-id';
    button.setAttribute('aria-label', `Copy ${textOf(holder)}`);
    holder.append(button);
  }
}

/** The full text, even where it is shown truncated. */
function textOf(holder: Element): string {
  const cut = holder.querySelector<HTMLElement>('[title]');
  return (cut?.title ?? holder.textContent ?? '').trim();
}
