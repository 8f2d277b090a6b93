/** `mesh-na completion`: prints shell completion scripts, generated from the command tree. */
import { Argument, type Command } from 'commander';
import { listedBelow } from './command-reference.ts';
import { addLocalOptions } from './kernel/options.ts';
import { type OutputOptions, printLines, printResult } from './kernel/output.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

type Shell = keyof typeof SCRIPTS;

export function addCompletionCommand(program: Command): void {
  const completion = program
    .command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .action((shell: Shell, options: OutputOptions) => runCompletion(program, shell, options));
  addLocalOptions(completion, [
    'mesh-na completion bash > ~/.local/share/bash-completion/completions/mesh-na',
    'mesh-na completion zsh > ~/.zfunc/_mesh-na',
    'mesh-na completion fish > ~/.config/fish/completions/mesh-na.fish',
  ]);
}

function runCompletion(program: Command, shell: Shell, options: OutputOptions): void {
  const script = SCRIPTS[shell](program.name(), completionsOf(program));
  if (options.json) printResult(options, { shell, script }, []);
  else printLines([script.trimEnd()]);
}

interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

interface CompletionOption extends CompletionWord {
  readonly takesValue: boolean;
  /** The accepted values, if they are known. */
  readonly choices: readonly string[];
}

interface Completions {
  /** The words of the command after the name of the program; empty for the program itself. */
  readonly path: string;
  /** Its subcommands, or the known values of its arguments. */
  readonly words: readonly CompletionWord[];
  readonly options: readonly CompletionOption[];
}

/** The program itself, and every command that its help lists. */
export function completionsOf(command: Command, path = ''): Completions[] {
  const below = listedBelow(command);
  const help = command.createHelp();
  const options = help.visibleOptions(command).map((option) => ({
    word: option.long ?? option.short ?? '',
    description: option.description,
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
  }));
  const words = [
    ...below.map((each) => ({ word: each.name(), description: each.description() })),
    ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((word) => ({ word, description })),
    ),
  ];
  const deeper = below.flatMap((each) =>
    completionsOf(each, path === '' ? each.name() : `${path} ${each.name()}`),
  );
  return [{ path, words, options }, ...deeper];
}

/** Where nothing is known, such as for free-form option values, bash completes file names. */
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

/** Works both in a folder of \`fpath\` and when sourced. Where nothing is known, zsh completes file names. */
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

/** Colons in the word are escaped, because a colon ends it. */
function described({ word, description }: CompletionWord): string {
  return quoted(`${word.replaceAll(':', '\\:')}:${description.replaceAll(':', '\\:')}`);
}

/** Commands with subcommands do not complete file names. */
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

/** Quotes text as one word for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The name of a shell function for the program. */
function functionName(program: string): string {
  return `_${program.replaceAll('-', '_')}`;
}

/** Returns the pattern of a `case` that recognizes the words of a command one by one. */
function pathPattern(completions: readonly Completions[]): string {
  return completions.flatMap(({ path }) => (path === '' ? [] : [quoted(path)])).join('|');
}

/** The options with known values, each with its command. */
function valueCases(
  completions: readonly Completions[],
): { readonly at: string; readonly choices: readonly string[] }[] {
  return completions.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ word, choices }) => ({ at: `${path} ${word}`, choices })),
  );
}
