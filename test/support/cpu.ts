/** CPU time that work takes, of all threads of this process: it does not grow while others compute. */

/** Milliseconds of CPU. */
export async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
