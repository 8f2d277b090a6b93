const SAID_FOR_MS = 3000;

/** Gives each example a copy button. */
export function addCopyButtons(): void {
  for (const snippet of document.querySelectorAll('.example figure')) addCopyButton(snippet);
}

function addCopyButton(snippet: Element): void {
  const caption = snippet.querySelector('figcaption');
  const code = snippet.querySelector('pre');
  if (caption === null || code === null) return;
  const route = snippet.closest('[data-entry]')?.querySelector('h3')?.textContent ?? '';
  const [button, said] = copyButton('copy', code);
  button.setAttribute('aria-label', `Copy: ${caption.textContent} ${route}`.trim());
  const tools = document.createElement('span');
  tools.append(said, ' ', button);
  caption.append(tools);
}

/** A button that copies the text of an element, and the place where it says so. */
export function copyButton(
  className: string,
  code: Element,
): [button: HTMLButtonElement, said: HTMLElement] {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = className;
  button.textContent = 'Copy';
  const said = document.createElement('span');
  said.setAttribute('role', 'status');
  button.addEventListener('click', async () => {
    said.textContent = (await copy(code)) ? 'Copied' : 'Select the text to copy it';
    setTimeout(() => {
      said.textContent = '';
    }, SAID_FOR_MS);
  });
  return [button, said];
}

/**
 * Browsers offer the clipboard API only over HTTPS and on localhost; elsewhere the text is selected and copied as a
 * user would do it.
 */
export async function copy(code: Element, text = code.textContent ?? ''): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(code);
  }
}

function copySelected(code: Element): boolean {
  const selection = getSelection();
  selection?.selectAllChildren(code);
  const isCopied = document.execCommand('copy');
  if (isCopied) selection?.removeAllRanges();
  return isCopied;
}
