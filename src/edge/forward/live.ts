/** Passes the messages of a live page on from the active instance to a viewer [link-3]. */
import type { Dispatcher, WebSocket } from 'undici';
import { watchPage } from '../../protocol/api/pages.ts';
import { BASE_URL, FORWARDED_FOR } from './target.ts';
import { loadUndici } from './upstream.ts';

export type UpstreamSocket = WebSocket;

export interface LiveClient {
  readonly remoteAddr: string;
  readonly baseUrl: string;
  /** Empty if the client is no page. */
  readonly origin: string;
  readonly host: string;
  readonly topic: string;
}

export function connectLive(
  dispatcher: Dispatcher,
  { remoteAddr, baseUrl, origin, host, topic }: LiveClient,
): UpstreamSocket {
  const at = `ws://${host}${watchPage.path}`;
  const url = new URL(URL.canParse(at) ? at : `ws://localhost${watchPage.path}`);
  url.searchParams.set('topic', topic);
  const headers: Record<string, string> = { [FORWARDED_FOR]: remoteAddr, [BASE_URL]: baseUrl };
  if (origin !== '') headers.origin = origin;
  const { WebSocket } = loadUndici();
  const socket = new WebSocket(url, { dispatcher, headers });
  socket.binaryType = 'arraybuffer';
  return socket;
}

/** `send` gets each message, and `end` is called when there will be no more. */
export function passOn(
  source: UpstreamSocket,
  send: (message: Uint8Array) => void,
  end: () => void,
): void {
  source.addEventListener('message', ({ data }) => {
    send(typeof data === 'string' ? Buffer.from(data) : new Uint8Array(data));
  });
  source.addEventListener('close', end);
}
