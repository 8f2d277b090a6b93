/**
 * Keeps a page up to date: it receives each change over one WebSocket, and fetches the page again after it
 * missed one. The page is complete without this script.
 */
import type { LiveMessage } from '../live-patch.ts';
import { fetchedPage } from './fetched-page.ts';
import { applyPatch, becomeInside } from './patch.ts';

const SILENCE_MS = 25_000;
const LONGEST_WAIT_MS = 30_000;
/** Spreads out the requests of viewers that all missed the same change. */
const SPREAD_MS = 1000;
/** Views with their own URL are not patched, and are fetched less often. */
const VIEW_SPREAD_MS = 10_000;

/** `everyMs` is how often the whole page is fetched again, changed or not. */
export function keepLive(everyMs?: number): void {
  const region = document.querySelector<HTMLElement>('[data-live]');
  if (region !== null) connect(region, updater(region, everyMs));
}

function connect(region: HTMLElement, update: (message: LiveMessage) => void): void {
  let failures = 0;
  let silence = 0;
  let lastNews = Date.now();

  function open(): void {
    const url = new URL(`./live?topic=${region.dataset.live}`, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    watch(socket);
    socket.addEventListener('open', () => {
      failures = 0;
      show('live', 'Live', null);
    });
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      watch(socket);
      lastNews = Date.now();
      update(JSON.parse(data) as LiveMessage);
    });
    socket.addEventListener('close', () => {
      clearTimeout(silence);
      showLost(lastNews);
      const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** failures);
      failures += 1;
      setTimeout(open, wait * (0.5 + Math.random() / 2));
    });
  }

  function watch(socket: WebSocket): void {
    clearTimeout(silence);
    silence = setTimeout(() => socket.close(), SILENCE_MS);
  }

  open();
}

function updater(region: HTMLElement, everyMs?: number): (message: LiveMessage) => void {
  let announced = region.dataset.version;
  let isFetching = false;
  const isView = region.dataset.view !== undefined;
  const spread = isView ? VIEW_SPREAD_MS : SPREAD_MS;

  async function catchUp(): Promise<void> {
    isFetching = true;
    let before: string | undefined;
    do {
      before = announced;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * spread));
      const page = await fetchedPage(location.href, 'no-cache');
      const fresh = page?.querySelector<HTMLElement>('[data-live]');
      // Without an answer, the next message triggers another attempt.
      if (!fresh) break;
      becomeInside(region, fresh);
      region.dataset.version = fresh.dataset.version;
      updated();
      // If only the page is ahead of the messages, the message about this version is on its way.
    } while (announced !== before && region.dataset.version !== announced);
    isFetching = false;
  }

  if (everyMs !== undefined) setInterval(() => document.hidden || isFetching || catchUp(), everyMs);
  return ({ version, from, patch }) => {
    if (version === undefined) return;
    announced = version;
    if (isFetching || version === region.dataset.version) return;
    const fits = !isView && from === region.dataset.version;
    if (fits && patch !== undefined && applyPatch(region, patch)) {
      region.dataset.version = version;
      updated();
    } else void catchUp();
  };
}

function updated(): void {
  document.dispatchEvent(new Event('live-update'));
}

/** `since` is the time of the last message, in milliseconds since the epoch. */
function showLost(since: number): void {
  const time = `${new Date(since).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  const text = `Connection lost. This page shows the state as of ${time}. Reconnecting…`;
  show('stale', text, `Last updated ${time}: `);
}

/** Shows whether the page is live: at its top and, by `warning`, wherever it would mislead. */
function show(state: 'live' | 'stale', text: string, warning: string | null): void {
  document.documentElement.dataset.liveState = state;
  const status = document.querySelector<HTMLElement>('[data-live-status]');
  if (status !== null) {
    status.dataset.liveStatus = state;
    if (status.textContent !== text) status.textContent = text;
  }
  for (const element of document.querySelectorAll<HTMLElement>('[data-when-lost]')) {
    element.textContent = warning;
    element.hidden = warning === null;
  }
}
