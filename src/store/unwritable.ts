/** The error for a state file that exists, as far as this user can see, but cannot be read. */
export function unreadable(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  const cure =
    code === 'EACCES' || code === 'EPERM'
      ? ': run this as the user of the authority'
      : ': look at the disk';
  return new Error(`${path} cannot be read (${code})${cure}`);
}

/** The error for a state file that cannot be written. */
export function unwritable(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  return new Error(
    `The state in the data directory cannot be used: ${path} cannot be written (${code})`,
  );
}
