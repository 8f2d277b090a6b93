/**
 * The module that a thread or child process starts with. When compiled, it is the worker itself; as TypeScript, it is a
 * launcher, because a thread does not inherit the TypeScript loader of its process.
 */
export function threadEntry(
  name: 'edge' | 'list' | 'watchdog' | 'backup' | 'scrub' | 'signer',
): URL {
  const isCompiled = import.meta.url.endsWith('.js');
  return new URL(isCompiled ? `./${name}-worker.js` : `./launch-${name}.js`, import.meta.url);
}
