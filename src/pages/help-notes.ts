/** The end of a command's help. Its two columns become a list of fields, in which long lines wrap. */
import { type Html, html } from './html.ts';

/** Not an example, which a prompt begins. */
const ROW = /^ {2}(?!\$ )(\S+(?: \S+)*) {2,}(\S.*)$/;

export function helpNotes(notes: string): Html {
  return html`<div class="notes">
${blocksOf(notes.split('\n')).map(block)}</div>
`;
}

/** Consecutive lines that are rows of columns, or that are none. */
interface Block {
  readonly isTable: boolean;
  readonly lines: string[];
}

function blocksOf(lines: readonly string[]): Block[] {
  const blocks: Block[] = [];
  for (const line of lines) {
    const isTable = ROW.test(line);
    const last = blocks.at(-1);
    if (last?.isTable === isTable) last.lines.push(line);
    else blocks.push({ isTable, lines: [line] });
  }
  return blocks;
}

function block({ isTable, lines }: Block): Html {
  if (!isTable) {
    return html`<pre>${lines.join('\n').trim()}</pre>
`;
  }
  return html`<dl class="fields">
${lines.map(row)}</dl>
`;
}

function row(line: string): Html {
  const [, term = '', description = ''] = ROW.exec(line) ?? [];
  return html`<div><dt>${term}</dt><dd>${description}</dd></div>
`;
}
