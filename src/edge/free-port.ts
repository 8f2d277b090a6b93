import { createServer } from 'node:net';
import { portHolder } from './port-holder.ts';

/**
 * Checks that nothing listens on the port, and picks a free one for 0. Threads that share a port would
 * otherwise silently share it with another server.
 */
export function freePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', ({ code }: NodeJS.ErrnoException) => {
      const refused = `The address ${host}:${port} cannot be listened on`;
      reject(new Error(`${refused}: ${reasonAndCure(port, code)}`));
    });
    probe.listen({ host, port, exclusive: true }, () => {
      const address = probe.address();
      const found = typeof address === 'object' && address !== null ? address.port : port;
      probe.close(() => resolve(found));
    });
  });
}

function reasonAndCure(port: number, code = 'unknown cause'): string {
  switch (code) {
    case 'EADDRINUSE':
      return `${portHolder(port) ?? 'another process'} uses it; stop that one, or choose another port by --port`;
    case 'EACCES':
      return 'this user may not use the port; choose one from 1024 on by --port';
    case 'EADDRNOTAVAIL':
      return 'this machine does not have that address; choose one of its own by --host';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the name of the host is not known; choose an address by --host';
    default:
      return `${code}; choose another by --host and --port`;
  }
}
