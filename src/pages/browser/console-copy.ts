import { copyButton } from './copy.ts';

/** Gives each block of text a copy button: command lines, tokens, JSON. */
export function copyTexts(): void {
  for (const block of document.querySelectorAll('pre.code')) {
    const [button, said] = copyButton('copy-text', block);
    const line = document.createElement('p');
    line.className = 'small';
    line.append(button, ' ', said);
    block.after(line);
  }
}
