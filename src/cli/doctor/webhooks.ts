/** Whether each webhook could be posted to from this machine; nothing is posted. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { bareHost } from '../../base/bare-host.ts';
import { createLookup, PrivateAddress } from '../../server/webhooks/lookup.ts';
import type { WebhookSettings } from '../../server/webhooks/settings.ts';
import { type Finding, fine, warning, wrong } from './finding.ts';

const PATIENCE_MS = 5000;

/** A finding for each; none without webhooks. */
export function checkWebhooks({ urls, allowsPrivate }: WebhookSettings): Promise<Finding[]> {
  const lookup = createLookup(allowsPrivate);
  return Promise.all(
    urls.map(async (url) => {
      const socket = connectTo(url, lookup);
      try {
        const signal = AbortSignal.timeout(PATIENCE_MS);
        await once(socket, url.protocol === 'https:' ? 'secureConnect' : 'connect', { signal });
        return fine('webhooks', `${url.host} can be connected to`);
      } catch (cause) {
        return judge(url.host, cause as NodeJS.ErrnoException);
      } finally {
        socket.destroy();
      }
    }),
  );
}

function connectTo(
  { protocol, hostname, port }: URL,
  lookup: ReturnType<typeof createLookup>,
): Socket {
  const host = bareHost(hostname);
  const isTls = protocol === 'https:';
  const place = { host, port: Number(port) || (isTls ? 443 : 80), lookup };
  const socket = isTls ? connectTls({ ...place, ...servername(host) }) : connectTcp(place);
  // It may fail once more when it is given up.
  return socket.on('error', () => undefined);
}

/** An address is no name of a server. */
function servername(host: string) {
  return /[a-z]/i.test(host) && !host.includes(':') ? { servername: host } : {};
}

function judge(host: string, cause: NodeJS.ErrnoException): Finding {
  if (cause instanceof PrivateAddress) {
    const cure = 'Name an address that is public, or set MESH_WEBHOOK_PRIVATE=1';
    return wrong('webhooks', `${host} leads to a private address`, cure);
  }
  const { code = cause.name } = cause;
  if (NAMELESS.has(code)) return wrong('webhooks', `${host} is not a name (${code})`, 'Correct it');
  const cure = 'See whether it runs, and whether its certificate is one that Node.js accepts';
  const problem = cause.name === 'AbortError' ? 'no answer' : code;
  return warning('webhooks', `${host} cannot be connected to (${problem})`, cure);
}

const NAMELESS: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_NONAME']);
