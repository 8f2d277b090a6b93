import { freePort } from '../../src/edge/http/free-port.ts';

/** Below the ports that systems assign automatically, so that none is taken before it is used. */
const FIRST = 20_000;
const COUNT = 10_000;

/** A free port that other tests are unlikely to get, even if it is used much later. */
export async function ownPort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    const isFree = await freePort('127.0.0.1', port).then(
      () => true,
      () => false,
    );
    if (isFree) return port;
  }
}
