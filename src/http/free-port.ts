import { createServer } from 'node:net';

/**
 * Checks that nothing listens on the port, and picks a free one for 0. Threads that share a port would
 * otherwise silently share it with another server.
 */
export function freePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', () => {
      reject(new Error(`The address ${host}:${port} cannot be listened on`));
    });
    probe.listen({ host, port, exclusive: true }, () => {
      const address = probe.address();
      const found = typeof address === 'object' && address !== null ? address.port : port;
      probe.close(() => resolve(found));
    });
  });
}
