/** Says whether the page is live, at its head and, once the connection is lost, wherever it would mislead. */

export function showLive(): void {
  show('live', 'Live');
  for (const element of document.querySelectorAll<HTMLElement>('[data-when-lost]')) {
    element.hidden = true;
  }
}

/** `since` is when the last message came, in milliseconds since the epoch. */
export function showLost(since: number): void {
  const time = `${new Date(since).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  show('stale', `Connection lost. This page shows how it was at ${time}; connecting again.`);
  for (const element of document.querySelectorAll<HTMLElement>('[data-when-lost]')) {
    element.textContent = `Not live since ${time}. It was: `;
    element.hidden = false;
  }
}

function show(state: 'live' | 'stale', text: string): void {
  document.documentElement.dataset.liveState = state;
  const status = document.querySelector<HTMLElement>('[data-live-status]');
  if (status === null) return;
  status.dataset.liveStatus = state;
  if (status.textContent !== text) status.textContent = text;
}
