/**
 * When what has gathered is sent: at the end of the turn, but not sooner than a moment after what was sent before. To
 * encrypt and send a message costs as much as several requests in it, so under load each has to carry many.
 */

const APART_MS = 1;

/** The result sends what has gathered by `send`; call it again only after that. */
export function createPace(elapsed: () => number): (send: () => void) => void {
  let sentAt = Number.NEGATIVE_INFINITY;
  return (send) => {
    const now = () => {
      sentAt = elapsed();
      send();
    };
    if (elapsed() - sentAt < APART_MS) setTimeout(now, APART_MS);
    else setImmediate(now);
  };
}
