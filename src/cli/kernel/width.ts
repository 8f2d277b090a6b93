/** Text in the columns of a terminal, where some characters take two. */
import stringWidth from 'string-width';

export { stringWidth };

interface Room {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Lines of printable text that end between words where a terminal would end them within one. */
export function wrapped(
  text: string,
  { isTTY = false, columns = 0 }: Room,
  indent: number,
): string[] {
  if (!isTTY || columns < 2 * indent) return [text];
  const lines: string[] = [];
  let line = '';
  for (const part of text.match(/\s*\S+/g) ?? []) {
    if (line !== '' && stringWidth(line + part) > columns) {
      lines.push(line);
      line = ' '.repeat(indent) + part.trimStart();
    } else line += part;
  }
  return [...lines, line];
}

const CHARACTERS = new Intl.Segmenter();

/** The text in at most this width. */
export function cut(cell: string, width: number): string {
  if (stringWidth(cell) <= width) return cell;
  let kept = '';
  for (const { segment } of CHARACTERS.segment(cell)) {
    if (stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept}…`;
}
