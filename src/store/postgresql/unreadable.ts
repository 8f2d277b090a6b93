/** Recognizes errors that PostgreSQL reports about the files of a table. */
import { DamagedState } from '../rows.ts';

/**
 * SQLSTATE class XX for inconsistent pages and rows, `io_error` for an unreadable disk, `undefined_file` for a missing
 * file.
 */
const OF_THE_FILES = /^(?:XX...|58030|58P01)$/;

/** The server's message; null if the error does not concern the files of the table. */
export function unreadableBecause(cause: unknown): string | null {
  const { code = '', message = '' } = cause as { code?: string; message?: string };
  return OF_THE_FILES.test(code) ? message : null;
}

/** The error to throw if a table could not be read. */
export function readingProblem(table: string, cause: unknown): unknown {
  const problem = unreadableBecause(cause);
  return problem === null ? cause : new DamagedState(`table ${table} cannot be read (${problem})`);
}
