/** Checks whether each webhook can be reached from this machine, without posting anything. */
import { once } from 'node:events';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { bareHost } from '../../base/bare-host.ts';
import { createLookup, PrivateAddress } from '../../server/outbound/lookup.ts';
import { type WebhookSettings, webhookReach } from '../../server/webhooks/settings.ts';
import { type Finding, fine, warning, wrong } from './finding.ts';

const PATIENCE_MS = 5000;

/** Returns one finding per webhook. */
export function checkWebhooks({ urls, allowsPrivate }: WebhookSettings): Promise<Finding[]> {
  const lookup = createLookup(webhookReach(allowsPrivate));
  return Promise.all(
    urls.map(async (url) => {
      const socket = connectTo(url, lookup);
      try {
        const signal = AbortSignal.timeout(PATIENCE_MS);
        await once(socket, url.protocol === 'https:' ? 'secureConnect' : 'connect', { signal });
        return fine('webhooks', `${url.host} is reachable`);
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
  const named = isIP(host) === 0 && { servername: host };
  const socket = isTls ? connectTls({ ...place, ...named }) : connectTcp(place);
  // The abandoned socket may emit another error.
  return socket.on('error', () => undefined);
}

function judge(host: string, cause: NodeJS.ErrnoException): Finding {
  if (cause instanceof PrivateAddress) {
    const cure = 'Use a public address, or set MESH_WEBHOOK_PRIVATE=1';
    return wrong('webhooks', `${host} resolves to a private address`, cure);
  }
  const { code = cause.name } = cause;
  if (NAMELESS.has(code))
    return wrong('webhooks', `${host} cannot be resolved (${code})`, 'Correct the host name');
  const cure = 'Check that it is running, and that Node.js accepts its certificate';
  const problem = cause.name === 'AbortError' ? 'no answer' : code;
  return warning('webhooks', `${host} is unreachable (${problem})`, cure);
}

const NAMELESS: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_NONAME']);
