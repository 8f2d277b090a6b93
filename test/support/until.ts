/**
 * Repeats the check until it is true: for what only another process knows, or what takes its own time. There is no
 * limit, because a busy machine would reach it; the run ends a file that hangs.
 */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}
