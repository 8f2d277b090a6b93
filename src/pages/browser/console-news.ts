import { fetchedPage } from './fetched-page.ts';
import { becomeInside } from './patch.ts';

/** News that arrive together lead to one request. */
const TOGETHER_MS = 300;

/** Keeps the part of the page that names a source of news up to date. */
export function followNews(): void {
  const region = document.querySelector<HTMLElement>('[data-news]');
  const source = region?.dataset.news;
  if (!region || source === undefined) return;
  let waiting = false;
  new EventSource(source).addEventListener('message', () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      void refresh(region);
    }, TOGETHER_MS);
  });
}

async function refresh(region: HTMLElement): Promise<void> {
  const page = await fetchedPage(location.href);
  const fresh = page?.querySelector('[data-news]');
  if (!fresh) return;
  becomeInside(region, fresh);
  document.dispatchEvent(new Event('live-update'));
}
