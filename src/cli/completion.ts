/** `mesh-na completion`: scripts by which shells complete command lines, made from the command tree. */
import { Argument, type Command } from 'commander';
import { bashScript } from './completion-bash.ts';
import { fishScript } from './completion-fish.ts';
import { completionsOf } from './completion-tree.ts';
import { zshScript } from './completion-zsh.ts';
import { examples, jsonOption } from './options.ts';
import { type OutputOptions, printLines, printResult } from './output.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

type Shell = keyof typeof SCRIPTS;

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print the script by which a shell completes command lines of this program')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addOption(jsonOption())
    .addHelpText(
      'after',
      examples([
        'mesh-na completion bash > ~/.local/share/bash-completion/completions/mesh-na',
        'mesh-na completion zsh > ~/.zfunc/_mesh-na',
        'mesh-na completion fish > ~/.config/fish/completions/mesh-na.fish',
      ]),
    )
    .action((shell: Shell, options: OutputOptions) => runCompletion(program, shell, options));
}

function runCompletion(program: Command, shell: Shell, options: OutputOptions): void {
  const script = SCRIPTS[shell](program.name(), completionsOf(program));
  if (options.json) printResult(options, { shell, script }, []);
  else printLines([script.trimEnd()]);
}
