/**
 * The worker of this name in the folder of the caller, with which a thread or child process starts. When compiled, it is
 * a program of its own; as TypeScript, a launcher loads it, because a thread does not inherit the TypeScript loader of its
 * process.
 */
export function workerEntry(name: string, callerUrl: string): { module: URL; argv: string[] } {
  if (callerUrl.endsWith('.js')) {
    return { module: new URL(`./${name}-worker.js`, callerUrl), argv: [] };
  }
  const worker = new URL(`./${name}-worker.ts`, callerUrl);
  return { module: new URL('./launch.js', import.meta.url), argv: [worker.href] };
}
