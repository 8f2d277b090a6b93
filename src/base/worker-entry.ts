/**
 * The module that a thread or child process starts with, in the folder of the caller. When compiled, it is the worker
 * itself; as TypeScript, it is a launcher, because a thread does not inherit the TypeScript loader of its process.
 */
export function workerEntry(name: string, callerUrl: string): URL {
  const isCompiled = callerUrl.endsWith('.js');
  return new URL(isCompiled ? `./${name}-worker.js` : `./launch-${name}.js`, callerUrl);
}
