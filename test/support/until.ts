/**
 * Repeats the check until it is true: for what only another process knows, or what takes its own time. There is no
 * limit, because a busy machine would reach it; the run ends a file that hangs. The longer it takes, the rarer the
 * checks, which would otherwise keep a core from what they wait for.
 */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  for (let pause = 5; !(await holds()); pause = Math.min(1.2 * pause, 50)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
