/** The command tree as plain data, and scripts by which shells ask this program what completes a line. */

import type { EventEmitter } from 'node:events';
import { Argument, type Command, Help } from 'commander';
import type { CommandEntry, CommandReference, Term } from '../pages/reference/cli-reference.ts';
import { define, filled } from './kernel/command.ts';
import { printLines, printResult } from './kernel/output.ts';

export function commandReference(program: Command): CommandReference {
  return {
    name: program.name(),
    description: program.description(),
    version: program.version() ?? '',
    options: optionTerms(program),
    notes: notesOf(program),
    commands: listedBelow(program).flatMap((command) => entriesOf(command, '')),
  };
}

/** Lists runnable commands only: a command that merely groups others has no entry. */
function entriesOf(command: Command, above: string): CommandEntry[] {
  const path = `${above}${command.name()}`;
  if (command.commands.length > 0) {
    return listedBelow(command).flatMap((below) => entriesOf(below, `${path} `));
  }
  const entry = {
    path,
    description: command.description(),
    usage: command.createHelp().commandUsage(command),
    arguments: argumentTerms(command),
    options: optionTerms(command),
    notes: notesOf(command),
  };
  return [entry];
}

/** The subcommands, without `help`. */
export function listedBelow(command: Command): Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((below) => below.name() !== 'help');
}

function argumentTerms(command: Command): Term[] {
  const help = command.createHelp();
  return command.registeredArguments.map((argument) => ({
    term: help.argumentTerm(argument),
    description: help.argumentDescription(argument),
  }));
}

function optionTerms(command: Command): Term[] {
  const help = new Help();
  return help.visibleOptions(command).map((option) => ({
    term: help.optionTerm(option),
    description: help.optionDescription(option),
  }));
}

/** Collects the texts of `addHelpText` in the way that the help itself does. */
function notesOf(command: Command): string {
  const pieces: string[] = [];
  const write = (text: string) => pieces.push(text);
  // Commands are event emitters, which their type declarations omit.
  (command as unknown as EventEmitter).emit('afterHelp', { error: false, command, write });
  return pieces.join('').trim();
}

/** The variables that any command of the tree reads. */
export function variablesOf(command: Command): string[] {
  const own = command.options.flatMap(({ envVar }) => envVar ?? []);
  return [...own, ...command.commands.map(filled).flatMap(variablesOf)];
}

/** Each asks with the words after the name of the program. Where there is no answer, the shell completes file names. */
export const COMPLETIONS = {
  bash: `# Completion of mesh-na for bash.
_mesh_na() {
  local word
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do COMPREPLY+=("$word"); done < <(
    mesh-na complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null
  )
}
complete -o bashdefault -o default -F _mesh_na mesh-na
`,
  zsh: `#compdef mesh-na
# Completion of mesh-na for zsh, in a folder of fpath or sourced.
_mesh_na() {
  local -a found
  found=("\${(@f)$(mesh-na complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found//:/\\\\:}")
  found=("\${(@)found/$'\\t'/:}")
  if [[ -z \${found[1]} ]]; then _files
  elif [[ \${words[CURRENT]} == -* ]]; then _describe -o option found
  else _describe command found
  fi
}
if [[ \${funcstack[1]} == _mesh_na || \${funcstack[1]} == _mesh-na ]]; then _mesh_na "$@"
else compdef _mesh_na mesh-na
fi
`,
  fish: `# Completion of mesh-na for fish.
function __mesh_na
    set -l found (mesh-na complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        string join \\n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c mesh-na -f -a '(__mesh_na)'
`,
} as const;

type Shell = keyof typeof COMPLETIONS;

export function addCompletionCommand(program: Command): void {
  define(program, 'completion', {
    about: 'print a shell completion script',
    args: [new Argument('<shell>', 'the shell').choices(Object.keys(COMPLETIONS))],
    examples: [
      'mesh-na completion bash > ~/.local/share/bash-completion/completions/mesh-na',
      'mesh-na completion zsh > ~/.zfunc/_mesh-na',
      'mesh-na completion fish > ~/.config/fish/completions/mesh-na.fish',
    ],
    run(options, [shell]) {
      const script = COMPLETIONS[shell as Shell];
      if (options.json) printResult(options, { shell: shell as Shell, script }, []);
      else printLines([script.trimEnd()]);
    },
  });
  program
    .command('complete', { hidden: true })
    .description('print what completes these words, for the scripts of mesh-na completion')
    .argument('[words...]')
    .action((words: readonly string[]) => printLines(completionsOf(program, words)));
}

/** What may stand in the place of the last word, each with a tab and its description. */
function completionsOf(program: Command, words: readonly string[]): string[] {
  const [before, current] = [words.slice(0, -1), words.at(-1) ?? ''];
  // Other words are options, their values and arguments.
  const command = before.reduce(
    (at, word) => listedBelow(at).find((each) => each.name() === word) ?? at,
    program,
  );
  const options = new Help().visibleOptions(command);
  const valued = options.find(
    ({ long, required, optional }) => long === before.at(-1) && (required || optional),
  );
  const candidates: readonly (readonly [word: string, about: string])[] =
    valued !== undefined
      ? (valued.argChoices ?? []).map((choice) => [choice, valued.description])
      : current.startsWith('-')
        ? options.map(({ long, short, description }) => [long ?? short ?? '', description])
        : [
            ...listedBelow(command).map((each) => [each.name(), each.description()] as const),
            ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
              argChoices.map((word) => [word, description] as const),
            ),
          ];
  return candidates
    .filter(([word]) => word.startsWith(current))
    .map(([word, about]) => `${word}\t${about}`);
}
