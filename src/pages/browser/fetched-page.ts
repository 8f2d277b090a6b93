/** Fetches a page of this server; null if it is not available now. */
export async function fetchedPage(address: string, cache?: RequestCache): Promise<Document | null> {
  try {
    const answer = await fetch(address, cache === undefined ? {} : { cache });
    if (!answer.ok) return null;
    return new DOMParser().parseFromString(await answer.text(), 'text/html');
  } catch {
    return null;
  }
}
