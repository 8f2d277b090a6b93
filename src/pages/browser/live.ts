/**
 * Keeps a page up to date: a WebSocket names each version of its content, and the page then fetches itself and turns
 * into what it got. Elements that stay keep focus, selection and scroll position. The page is complete without this
 * script.
 */
import { Idiomorph } from 'idiomorph';
import { prepare } from './values.ts';

interface News {
  readonly version?: string;
  readonly spread_ms?: number;
}

const SILENCE_MS = 25_000;
const LONGEST_WAIT_MS = 30_000;
const SPREAD_MS = 1000;
/** Events that arrive together lead to one request. */
const TOGETHER_MS = 300;
const RETRY_MS = 5000;

export function keepLive(): void {
  const region = document.querySelector<HTMLElement>('[data-live]');
  if (region !== null) connect(region, updater(region));
}

function connect(region: HTMLElement, update: (news: News) => void): void {
  let lastNews = Date.now();
  const take = (news: News) => {
    lastNews = Date.now();
    update(news);
  };
  const source = region.dataset.live ?? '';
  const follow = source.startsWith('./') ? followEvents : followSocket;
  follow(source, take, (isLive) => (isLive ? showLive() : showLost(lastNews)));
}

type Take = (news: News) => void;
type Turn = (isLive: boolean) => void;

function followSocket(topic: string, take: Take, turn: Turn): void {
  const url = new URL(`./live?topic=${topic}`, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  let failures = 0;
  let silence = 0;

  function open(): void {
    const socket = new WebSocket(url);
    watch(socket);
    socket.addEventListener('open', () => {
      failures = 0;
      turn(true);
    });
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      watch(socket);
      take(JSON.parse(data) as News);
    });
    socket.addEventListener('close', () => {
      clearTimeout(silence);
      turn(false);
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

/**
 * The console has events instead of a socket. A hidden page closes its connection, because browsers open only a few to
 * each server.
 */
function followEvents(source: string, take: Take, turn: Turn): void {
  let events: EventSource | null = null;
  let retry = 0;
  let failures = 0;

  function open(): void {
    const opened = new EventSource(source);
    events = opened;
    opened.addEventListener('open', () => {
      failures = 0;
      turn(true);
    });
    opened.addEventListener('error', () => {
      turn(false);
      // Browsers reconnect by themselves, but not after an error of the authority.
      if (opened.readyState !== EventSource.CLOSED) return;
      retry = setTimeout(open, Math.min(LONGEST_WAIT_MS, RETRY_MS * 2 ** failures));
      failures += 1;
    });
    opened.addEventListener('message', ({ data }: MessageEvent<string>) =>
      take({ version: data, spread_ms: TOGETHER_MS }),
    );
  }

  document.addEventListener('visibilitychange', () => {
    clearTimeout(retry);
    events?.close();
    if (document.hidden) return;
    open();
    take({ version: 'shown again', spread_ms: 0 });
  });
  open();
}

function updater(region: HTMLElement): (news: News) => void {
  let announced = region.dataset.version;
  let isFetching = false;
  let fetchedAt = 0;
  const leastSpread = Number(region.dataset.spread);
  const pauseMs = Number(region.dataset.pause);
  const everyMs = Number(region.dataset.every);

  async function catchUp(spread: number): Promise<void> {
    isFetching = true;
    let before: string | undefined;
    do {
      before = announced;
      const own = Math.random() * Math.max(spread, leastSpread);
      const wait = Math.max(own, fetchedAt + pauseMs - Date.now());
      await new Promise((resolve) => setTimeout(resolve, wait));
      fetchedAt = Date.now();
      const fresh = (await fetchedPage(location.href))?.querySelector('[data-live]');
      // Without an answer, the next message triggers another attempt.
      if (!fresh) break;
      become(region, fresh);
      // If only the page is ahead of the messages, the message about this version is on its way.
    } while (announced !== before && region.dataset.version !== announced);
    isFetching = false;
  }

  if (everyMs > 0) {
    setInterval(() => document.hidden || isFetching || catchUp(SPREAD_MS), everyMs);
  }
  return ({ version, spread_ms: spread = SPREAD_MS }) => {
    if (version === undefined) return;
    announced = version;
    if (!isFetching && version !== region.dataset.version) void catchUp(spread);
  };
}

function showLive(): void {
  show('live', 'Live', null);
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

/** Other copies of a page: fetched, and taken over by the one that is shown. */

/** What readers and scripts have changed of an element that stays. */
const OWN_ATTRIBUTES = ['open', 'style', 'tabindex', 'data-value', 'data-current'];

/** Gives an element of the page the form that it has in another copy of the page. */
export function become(shown: Element, fresh: Element): void {
  prepare(fresh);
  Idiomorph.morph(shown, fresh, {
    callbacks: {
      beforeNodeMorphed: (before, after) => !before.isEqualNode(after) && !isFilledIn(before),
      beforeAttributeUpdated: (name) => !OWN_ATTRIBUTES.includes(name),
    },
  });
}

/** What the reader has typed stays, and so does the form around it. */
function isFilledIn(element: Element): boolean {
  return element instanceof HTMLFormElement && element.matches('.ask');
}

/** Fetches a page of this server; null if it is not available now. */
export async function fetchedPage(address: string): Promise<Document | null> {
  try {
    // The browser sends the validator of its copy, and gets no body while that is current.
    const answer = await fetch(address, { cache: 'no-cache' });
    if (!answer.ok) return null;
    return new DOMParser().parseFromString(await answer.text(), 'text/html');
  } catch {
    return null;
  }
}
