import {
  type Completions,
  type CompletionWord,
  functionName,
  pathPattern,
  quoted,
  valueCases,
} from './completion-tree.ts';

/** Works in a folder of \`fpath\` and when it is sourced. Where nothing is known zsh completes names of files. */
export function zshScript(program: string, completions: readonly Completions[]): string {
  const name = functionName(program);
  return `#compdef ${program}
# Completion of ${program} for zsh.
${name}() {
  local at='' next='' word
  local -a commands options values
  for word in "\${(@)words[2,CURRENT-1]}"; do
    next="\${at:+$at }$word"
    case "$next" in
      ${pathPattern(completions)}) at=$next ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${valueCases(completions)
  .map(({ at, choices }) => `    ${quoted(at)}) values=(${choices.map(quoted).join(' ')}) ;;`)
  .join('\n')}
    *) case "$at" in
${completions.map(listsOf).join('\n')}
    esac ;;
  esac
  if (( $#values )); then compadd -a values
  elif [[ \${words[CURRENT]} == -* ]]; then _describe -o option options
  elif (( $#commands )); then _describe command commands
  else _files
  fi
}
if [[ \${funcstack[1]} == ${name} || \${funcstack[1]} == _${program} ]]; then ${name} "$@"
else compdef ${name} ${program}
fi
`;
}

function listsOf({ path, words, options }: Completions): string {
  const lists = `commands=(${words.map(described).join(' ')}) options=(${options.map(described).join(' ')})`;
  return `      ${quoted(path)}) ${lists} ;;`;
}

/** A colon ends the word, so those in it are escaped. */
function described({ word, description }: CompletionWord): string {
  return quoted(`${word.replaceAll(':', '\\:')}:${description.replaceAll(':', '\\:')}`);
}
