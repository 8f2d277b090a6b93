/**
 * Decides when collected data is sent: at the end of the turn, but no sooner than a short interval after the previous
 * message. Encrypting, sending and reading a message costs as much as many requests, so under load each message must
 * carry many.
 */

/** The minimum interval between two messages that somebody is waiting for. */
const APART_MS = 1;

/**
 * The returned function schedules a call of `send`, at least `apart` milliseconds after the previous one. Call it for
 * every item collected; the earliest time wins.
 */
export function createPace(elapsed: () => number, send: () => void): (apart?: number) => void {
  let sentAt = Number.NEGATIVE_INFINITY;
  /** The planned interval since the previous message; null while nothing is collected. */
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
