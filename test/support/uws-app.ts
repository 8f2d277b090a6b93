/** A server of uWebSockets.js, for tests of single parts of the edge. */

import type { TemplatedApp } from 'uWebSockets.js';
import { createRequire } from 'node:module';

const uws: typeof import('uWebSockets.js') = createRequire(import.meta.url)('uWebSockets.js');

/** Listens on a free port of 127.0.0.1. */
export async function listenApp(prepare: (app: TemplatedApp) => void) {
  const app = uws.App();
  prepare(app);
  const port = await new Promise<number>((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => resolve(socket ? uws.us_socket_local_port(socket) : 0));
  });
  return { port, url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => void app.close() };
}
