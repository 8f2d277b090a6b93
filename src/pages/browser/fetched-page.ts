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
