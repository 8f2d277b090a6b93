/** What PostgreSQL itself finds wrong with the files of a table when it reads them. */
import { DamagedState } from '../rows.ts';

/**
 * A page or row that contradicts itself, a disk that does not give it, or a file that is gone: SQLSTATE class XX,
 * `io_error` and `undefined_file`.
 */
const OF_THE_FILES = /^(?:XX...|58030|58P01)$/;

/** The sentence of the server; null when the cause says nothing of the table that was read. */
export function unreadableBecause(cause: unknown): string | null {
  const { code = '', message = '' } = cause as { code?: string; message?: string };
  return OF_THE_FILES.test(code) ? message : null;
}

/** What to throw when the reading of a table has failed. */
export function readingProblem(table: string, cause: unknown): unknown {
  const problem = unreadableBecause(cause);
  return problem === null ? cause : new DamagedState(`table ${table} cannot be read (${problem})`);
}
