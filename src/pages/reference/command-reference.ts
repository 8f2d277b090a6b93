/** The command line as plain data, so that an edge thread can show it without loading the commands. */

export interface CommandReference {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Options of the program itself. */
  readonly options: readonly Term[];
  /** The last part of the program's help: exit codes and examples. */
  readonly notes: string;
  /** Every runnable command, in the order of the help. */
  readonly commands: readonly CommandEntry[];
}

export interface CommandEntry {
  /** The words after the name of the program, such as `treaty issue`. */
  readonly path: string;
  readonly description: string;
  readonly usage: string;
  readonly arguments: readonly Term[];
  readonly options: readonly Term[];
  /** The last part of its help, mostly examples; may be empty. */
  readonly notes: string;
}

export interface Term {
  readonly term: string;
  readonly description: string;
}
