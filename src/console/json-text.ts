/** JSON for people to read: the given text on several lines, each value exactly as it is written. */

export function indentedJson(text: string): string {
  let depth = 0;
  let shown = '';
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '}' || token === ']') depth -= 1;
    const isEnd = (token === '}' || token === ']') && !/[{[]$/.test(shown);
    const isStart = /[{[,]$/.test(shown) && token !== '}' && token !== ']';
    if (isEnd || isStart) shown += `\n${'  '.repeat(depth)}`;
    shown += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
  }
  return shown;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/g;
