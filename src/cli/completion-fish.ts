import { type Completions, functionName } from './completion-tree.ts';

/** Commands that take other commands complete no names of files. */
export function fishScript(program: string, completions: readonly Completions[]): string {
  const name = `_${functionName(program)}`;
  const paths = completions.flatMap(({ path }) => (path === '' ? [] : [inFish(path)]));
  return `# Completion of ${program} for fish.
function ${name}_at
    set -l at
    for word in (commandline -opc)[2..-1]
        set -l next (string join ' ' -- $at $word)
        if contains -- "$next" ${paths.join(' ')}
            set -a at $word
        end
    end
    test "$at" = "$argv[1]"
end
${completions.flatMap((each) => linesOf(program, name, each)).join('\n')}
`;
}

function linesOf(program: string, name: string, { path, words, options }: Completions): string[] {
  const start = `complete -c ${program} -n ${inFish(`${name}_at ${inFish(path)}`)}`;
  return [
    ...words.map(
      ({ word, description }) => `${start} -f -a ${inFish(word)} -d ${inFish(description)}`,
    ),
    ...options.map(({ word, description, takesValue, choices }) => {
      const value = choices.length === 0 ? ' -r' : ` -x -a ${inFish(choices.join(' '))}`;
      const flag = `-l ${word.slice(2)} -d ${inFish(description)}`;
      return `${start} ${flag}${takesValue ? value : ''}`;
    }),
  ];
}

function inFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
