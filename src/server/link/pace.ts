/**
 * When what has gathered is sent: at the end of the turn, but not sooner than a moment after what was sent before. To
 * encrypt, send and read a message costs as much as many requests in it, so under load each has to carry many.
 */

/** Between two messages with something that somebody waits for. */
const APART_MS = 1;

/**
 * The result sends what has gathered by `send`, at least `apart` milliseconds after what was sent before. Call it for
 * everything that gathers: the soonest counts.
 */
export function createPace(elapsed: () => number, send: () => void): (apart?: number) => void {
  let sentAt = Number.NEGATIVE_INFINITY;
  /** How far from what was sent before the next is planned; null while nothing has gathered. */
  let planned: number | null = null;
  let timer: NodeJS.Timeout | undefined;

  function sendNow(): void {
    planned = null;
    sentAt = elapsed();
    send();
  }

  return (apart = APART_MS) => {
    if (planned !== null && planned <= apart) return;
    clearTimeout(timer);
    const left = sentAt + apart - elapsed();
    if (left > 0) {
      planned = apart;
      timer = setTimeout(sendNow, Math.ceil(left));
    } else {
      planned = 0;
      setImmediate(sendNow);
    }
  };
}
