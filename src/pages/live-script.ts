/**
 * The browser script of live pages: it receives each new content of the page over one WebSocket and
 * replaces the sections that changed. The page is complete without it.
 */

export const LIVE_SCRIPT = `
(() => {
  'use strict';
  const region = document.querySelector('[data-live]');
  const status = document.querySelector('[data-live-status]');
  if (!region || !status || !('WebSocket' in window)) return;
  const topic = region.getAttribute('data-live');
  const SILENCE_MS = 25000;
  const LONGEST_WAIT_MS = 30000;
  let failures = 0;
  let silence;
  let lastNews = Date.now();

  function show(state, text) {
    status.hidden = false;
    status.setAttribute('data-live-status', state);
    if (status.textContent !== text) status.textContent = text;
  }

  function time(at) {
    return new Date(at).toLocaleTimeString();
  }

  function connect() {
    const url = new URL('./live?topic=' + topic, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    watch(socket);
    socket.addEventListener('open', () => {
      failures = 0;
      show('live', 'Live');
    });
    socket.addEventListener('message', (event) => {
      watch(socket);
      lastNews = Date.now();
      const message = JSON.parse(event.data);
      if (typeof message.html === 'string') update(message.html);
    });
    socket.addEventListener('close', () => {
      clearTimeout(silence);
      show('stale', 'Not live since ' + time(lastNews) + ', connecting again');
      const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** failures);
      failures += 1;
      setTimeout(connect, wait * (0.5 + Math.random() / 2));
    });
  }

  function watch(socket) {
    clearTimeout(silence);
    silence = setTimeout(() => socket.close(), SILENCE_MS);
  }

  function update(html) {
    const template = document.createElement('template');
    template.innerHTML = html;
    const fresh = Array.from(template.content.children);
    const same = fresh.length === region.children.length;
    if (!same) {
      region.replaceChildren(...fresh);
      document.dispatchEvent(new Event('live-update'));
      return;
    }
    let changed = false;
    fresh.forEach((section, index) => {
      const shown = region.children[index];
      if (shown.outerHTML === section.outerHTML) return;
      shown.replaceWith(section);
      changed = true;
    });
    if (changed) document.dispatchEvent(new Event('live-update'));
  }

  connect();
})();
`;
