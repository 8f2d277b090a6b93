/** What the help of a command leaves out: how it reaches an authority, which is described once, and long lists of choices. */
import { type Command, Help, type Option } from 'commander';

const CONNECTIONS = new WeakMap<Command, ReadonlySet<Option>>();

/** These options of the command are described by `mesh-na help connection`. */
export function reachesBy(command: Command, options: readonly Option[]): void {
  CONNECTIONS.set(command, new Set(options));
}

/** More choices than this are left to the completion of the shell. */
const MOST_CHOICES = 12;

export const SHORT_HELP: Partial<Help> = {
  visibleOptions(command) {
    const described = CONNECTIONS.get(command);
    const visible = new Help().visibleOptions(command);
    return visible.filter((option) => described?.has(option) !== true);
  },
  optionDescription(option) {
    const described = new Help().optionDescription(option);
    const { argChoices = [] } = option;
    if (argChoices.length <= MOST_CHOICES) return described;
    return described.replace(/\(choices: [^)]*\)/, '(the shell completes it)');
  },
  formatHelp(command, helper) {
    const text = new Help().formatHelp(command, helper);
    const line = 'Connection options: mesh-na help connection\n';
    return CONNECTIONS.has(command) ? `${text}\n${line}` : text;
  },
};
