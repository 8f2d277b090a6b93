/**
 * Transcripts in the documents: fenced `console` blocks, in which a line that begins with `$ ` is a command, lines
 * that begin with `> ` continue it, and the lines below are its output.
 */

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

export interface Step {
  readonly command: string;
  /** The exact output, without the last line break. */
  readonly printed: string;
  /** Where the output is in the document: lines from `start` up to `end`, counted from 0. */
  readonly start: number;
  readonly end: number;
}

export function transcriptOf(markdown: string): Step[] {
  const steps: Step[] = [];
  const lines = markdown.split('\n');
  for (let line = 0; line < lines.length; line += 1) {
    if (lines[line] !== '```console') continue;
    const end = lines.indexOf('```', line + 1);
    steps.push(...stepsOf(lines, line + 1, end));
    line = end;
  }
  return steps;
}

function stepsOf(lines: readonly string[], first: number, end: number): Step[] {
  const starts = [...lines.keys()].slice(first, end).filter((at) => lines[at]?.startsWith('$ '));
  return starts.map((at, index) => {
    let start = at + 1;
    while (start < end && lines[start]?.startsWith('> ')) start += 1;
    const command = lines.slice(at, start).map((line) => line.slice(2));
    const next = starts[index + 1] ?? end;
    // A blank line may separate one command from the next.
    const printed = lines.slice(start, next).join('\n').trimEnd();
    return { command: command.join('\n'), printed, start, end: start + printed.split('\n').length };
  });
}

/** Files that the reader creates: fenced blocks with a name after their language. */
export function filesOf(markdown: string): { name: string; text: string }[] {
  const blocks = markdown.matchAll(/^```[a-z]+ ([\w.-]+)\n([\s\S]*?)^```$/gm);
  return [...blocks].map(([, name = '', text = '']) => ({ name, text }));
}

/** Replaces outputs in the document. */
export function withOutputs(markdown: string, outputs: ReadonlyMap<Step, string>): string {
  const lines = markdown.split('\n');
  for (const [{ start, end, printed }, output] of [...outputs].reverse()) {
    const old = printed === '' ? 0 : end - start;
    lines.splice(start, old, ...(output === '' ? [] : output.split('\n')));
  }
  return lines.join('\n');
}

/** Values that differ between runs, by kind. */
const KINDS: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'uuid'],
  [TIME, 'time'],
  [/[A-Za-z0-9+/]{86}==/g, 'signature'],
  [/[A-Za-z0-9+/]{43}=/g, 'key'],
  [/\b[0-9a-f]{64}\b/g, 'digest'],
  [/\b[0-9a-f]{48}\b/g, 'token'],
];

/** Masks the outputs of one run, in order: equal values have the same number throughout. */
export function masking(): (output: string) => string {
  const known = new Map<string, string>();
  const numbered = (kind: string) => (value: string) => {
    if (kind === 'time') return '<time>';
    const mask = known.get(value) ?? `<${kind} ${known.size}>`;
    known.set(value, mask);
    return mask;
  };
  return (output) => {
    const left = KINDS.reduce(
      (rest, [pattern, kind]) => rest.replace(pattern, numbered(kind)),
      // Contacts are written about a second after they happen, and commands that wait send several requests.
      output
        .replace(/\b(liveness|history|nonces|at revision) \d+/g, '$1 <count>')
        .replace(/\b(?:in \d+[smhd]|\d+[smhd] ago)\b/g, '<from now>'),
    );
    // Columns are as wide as their widest value.
    return left.replace(/ {2,}/g, '  ');
  };
}

/** The order of the moments in a text: for each one, the number of different earlier ones. */
export function orderOfTimes(text: string): number[] {
  const moments = [...text.matchAll(TIME)].map(([moment]) => Date.parse(moment));
  const order = [...new Set(moments)].sort((one, other) => one - other);
  return moments.map((moment) => order.indexOf(moment));
}
