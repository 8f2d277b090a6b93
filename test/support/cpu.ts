/** CPU time of all threads of this process, which other processes do not affect. */

/** Milliseconds of CPU. */
export async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
