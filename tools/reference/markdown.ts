/** Markdown of the generated pages. */

/** First line of each page. */
export const GENERATED =
  '<!-- Made by `npm run docs`. Edit the sources that it reads, not this page. -->';

export function page(title: string, ...blocks: readonly string[]): string {
  return `${[GENERATED, `# ${title}`, ...blocks].join('\n\n')}\n`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map(inCell).join(' | ')} |`).join('\n');
}

function inCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** Names in angle brackets would be read as HTML. */
export function escaped(text: string): string {
  return text.replace(/`[^`]*`|<([^>]+)>/g, (found) =>
    found.startsWith('`') ? found : code(found),
  );
}

export function sentence(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
