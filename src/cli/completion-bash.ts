import {
  type Completions,
  functionName,
  pathPattern,
  quoted,
  valueCases,
} from './completion-tree.ts';

/** Where nothing is known, such as for the value of an option, bash completes names of files. */
export function bashScript(program: string, completions: readonly Completions[]): string {
  const name = functionName(program);
  return `# Completion of ${program} for bash.
${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} at='' next='' word='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${at:+$at }\${COMP_WORDS[i]}"
    case "$next" in
      ${pathPattern(completions)}) at=$next ;;
    esac
  done
  local words=''
  case "$at \${COMP_WORDS[COMP_CWORD-1]}" in
${valueCases(completions)
  .map(({ at, choices }) => `    ${quoted(at)}) words=${quoted(choices.join(' '))} ;;`)
  .join('\n')}
    *) case "$at" in
${completions.map((each) => `      ${quoted(each.path)}) words=${quoted(wordsOf(each))} ;;`).join('\n')}
    esac
    [[ $current == -* ]] || words=\${words%%--*} ;;
  esac
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
}
complete -o bashdefault -o default -F ${name} ${program}
`;
}

/** Options come last. */
function wordsOf({ words, options }: Completions): string {
  return [...words, ...options].map(({ word }) => word).join(' ');
}
