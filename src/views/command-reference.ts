/** The command line as plain data, so that an edge can show it without loading it. */

export interface CommandReference {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Options of the program itself. */
  readonly options: readonly Term[];
  /** What the help of the program ends with: exit codes and examples. */
  readonly notes: string;
  /** Every command that can be run, in the order of the help. */
  readonly commands: readonly CommandEntry[];
}

export interface CommandEntry {
  /** Words behind the name of the program, such as `treaty issue`. */
  readonly path: string;
  readonly description: string;
  readonly usage: string;
  readonly arguments: readonly Term[];
  readonly options: readonly Term[];
  /** What its help ends with, examples above all; may be empty. */
  readonly notes: string;
}

export interface Term {
  readonly term: string;
  readonly description: string;
}
