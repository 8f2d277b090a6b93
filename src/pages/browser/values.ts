/** What scripts add to ids and times. */

export function prepare(root: ParentNode): void {
  addIdButtons(root);
  relateTimes(root);
}

export function prepareValues(): void {
  prepare(document);
  offerCopies();
  setInterval(() => relateTimes(document), EVERY_MS);
}

const EVERY_MS = 30_000;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Units of more than a day are used from two of them on. */
const UNITS = [
  [365 * DAY, 'year'],
  [30 * DAY, 'month'],
  [DAY, 'day'],
  [HOUR, 'hour'],
  [MINUTE, 'minute'],
] as const;

const words = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** Shows a relative time next to each timestamp. */
function relateTimes(root: ParentNode): void {
  const now = Date.now();
  for (const time of root.querySelectorAll('time')) {
    const seconds = (Date.parse(time.dateTime) - now) / 1000;
    if (!Number.isFinite(seconds)) continue;
    time.dataset.relative = inWords(seconds);
    time.title = time.dateTime;
  }
}

function inWords(seconds: number): string {
  const distance = Math.abs(seconds);
  const found = UNITS.find(([length]) => distance >= (length > DAY ? 2 * length : length));
  if (found === undefined) return 'now';
  const [length, unit] = found;
  return words.format(Math.sign(seconds) * Math.floor(distance / length), unit);
}

/** Buttons that copy: an icon at ids and commands in a line, a word at blocks of text. */

const SAID_FOR_MS = 3000;

const IN_LINE = '.id:not(.number), .posture :is(li, .empty) > code';

/** Gives each id, key and command about a finding a button. */
function addIdButtons(root: ParentNode): void {
  for (const holder of root.querySelectorAll(IN_LINE)) {
    if (holder.querySelector('.copy-id') !== null || textOf(holder) === '') continue;
    holder.append(newButton('copy-id', `Copy ${textOf(holder)}`));
  }
}

/** Gives each of these blocks a button: in its caption, or below it. */
export function addBlockButtons(blocks: string): void {
  for (const block of document.querySelectorAll(blocks)) {
    const caption = block.closest('figure')?.querySelector('figcaption');
    const route = block.closest('[data-entry]')?.querySelector('h3')?.textContent ?? '';
    const button = newButton('copy', `Copy: ${caption?.textContent ?? 'the text'} ${route}`.trim());
    button.textContent = 'Copy';
    if (caption) caption.append(button);
    else {
      const line = document.createElement('p');
      line.append(button);
      block.after(line);
    }
  }
}

/** Makes the buttons work, also those that come later. */
function offerCopies(): void {
  if (document.querySelector('.id, [data-live], pre') === null) return;
  const status = document.createElement('p');
  status.className = 'visually-hidden';
  status.setAttribute('role', 'status');
  document.querySelector('main')?.append(status);
  document.addEventListener('click', async ({ target }) => {
    const button = target instanceof Element ? target.closest('.copy, .copy-id') : null;
    const source = button && sourceOf(button);
    if (!button || !source) return;
    const isBlock = button.matches('.copy');
    const isCopied = await copy(source);
    const said = isCopied ? 'Copied' : 'Select the text to copy it';
    status.textContent = said;
    button.toggleAttribute('data-copied', isCopied);
    if (isBlock) button.textContent = said;
    setTimeout(() => {
      status.textContent = '';
      button.removeAttribute('data-copied');
      if (isBlock) button.textContent = 'Copy';
    }, SAID_FOR_MS);
  });
}

function newButton(className: string, label: string): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = className;
  button.setAttribute('aria-label', label);
  return button;
}

function sourceOf(button: Element): Element | null {
  const { parentElement: holder } = button;
  if (button.matches('.copy-id')) return holder;
  return holder?.closest('figure')?.querySelector('pre') ?? holder?.previousElementSibling ?? null;
}

/** The full text, even where it is shown truncated. */
function textOf(holder: Element): string {
  const cut = holder.querySelector<HTMLElement>('[title]');
  return (cut?.title ?? holder.textContent ?? '').trim();
}

/**
 * Browsers offer the clipboard API only over HTTPS and on localhost; elsewhere the text is selected and copied as a
 * user would do it.
 */
async function copy(source: Element): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(textOf(source));
    return true;
  } catch {
    return copySelected(source);
  }
}

function copySelected(source: Element): boolean {
  const selection = getSelection();
  selection?.selectAllChildren(source);
  const isCopied = document.execCommand('copy');
  if (isCopied) selection?.removeAllRanges();
  return isCopied;
}
