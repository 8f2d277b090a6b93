/**
 * Keeps a page up to date: it receives each new content over one WebSocket and replaces the sections that
 * changed. The page is complete without it.
 */

const SILENCE_MS = 25_000;
const LONGEST_WAIT_MS = 30_000;

export function keepLive(): void {
  const region = document.querySelector<HTMLElement>('[data-live]');
  const status = document.querySelector<HTMLElement>('[data-live-status]');
  if (region !== null && status !== null) connect(region, status);
}

function connect(region: HTMLElement, status: HTMLElement): void {
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
      show('live', 'Live');
    });
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      watch(socket);
      lastNews = Date.now();
      const { html } = JSON.parse(data) as { readonly html?: string };
      if (html !== undefined) update(region, html);
    });
    socket.addEventListener('close', () => {
      clearTimeout(silence);
      show('stale', `Not live since ${new Date(lastNews).toLocaleTimeString()}, connecting again`);
      const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** failures);
      failures += 1;
      setTimeout(open, wait * (0.5 + Math.random() / 2));
    });
  }

  function watch(socket: WebSocket): void {
    clearTimeout(silence);
    silence = setTimeout(() => socket.close(), SILENCE_MS);
  }

  function show(state: 'live' | 'stale', text: string): void {
    status.hidden = false;
    status.dataset.liveStatus = state;
    if (status.textContent !== text) status.textContent = text;
  }

  open();
}

function update(region: HTMLElement, html: string): void {
  const template = document.createElement('template');
  template.innerHTML = html;
  const fresh = [...template.content.children];
  if (fresh.length !== region.children.length) region.replaceChildren(...fresh);
  else {
    for (const [index, section] of fresh.entries()) {
      const shown = region.children[index];
      if (shown?.outerHTML !== section.outerHTML) shown?.replaceWith(section);
    }
  }
  document.dispatchEvent(new Event('live-update'));
}
