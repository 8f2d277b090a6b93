import { copy } from './copy.ts';

const SAID_FOR_MS = 3000;

/** Gives each block of text a copy button: command lines, tokens, JSON. */
export function copyTexts(): void {
  for (const block of document.querySelectorAll('pre.code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy-text';
    button.textContent = 'Copy';
    const said = document.createElement('span');
    said.setAttribute('role', 'status');
    const line = document.createElement('p');
    line.className = 'small';
    line.append(button, ' ', said);
    button.addEventListener('click', async () => {
      said.textContent = (await copy(block)) ? 'Copied' : 'Select the text to copy it';
      setTimeout(() => {
        said.textContent = '';
      }, SAID_FOR_MS);
    });
    block.after(line);
  }
}
