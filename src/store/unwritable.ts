/** The sentence for a file of the state that cannot be written. */
export function unwritable(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  return new Error(
    `The state in the data directory cannot be used: ${path} cannot be written (${code})`,
  );
}
