/** Opens the database, or finds out that another instance is active. */
import {
  type OpenedStore,
  openSharedStore,
  type SharedStoreOptions,
  type Standby,
} from '../store/open.ts';

export interface Opening {
  /** Null while another instance is active. */
  readonly opened: OpenedStore | null;
  /** Resolves when this instance may become active. */
  readonly opening: Promise<OpenedStore>;
  /** The name of the active instance. */
  readonly active: string;
  /** Stops waiting. */
  giveUp(): void;
}

/** Resolves when this instance may become active, or knows who is; rejects with a one-sentence error. */
export async function openOrWait(
  options: Omit<SharedStoreOptions, 'standby'>,
  standby: Omit<Standby, 'waiting' | 'signal'>,
): Promise<Opening> {
  const ended = new AbortController();
  let waiting: (active: string) => void = () => undefined;
  const heldByOther = new Promise<string>((resolve) => {
    waiting = resolve;
  });
  const opening = openSharedStore({
    ...options,
    standby: { ...standby, waiting, signal: ended.signal },
  });
  const first = await Promise.race([opening, heldByOther]);
  const giveUp = () => ended.abort();
  return typeof first === 'string'
    ? { opened: null, opening, active: first, giveUp }
    : { opened: first, opening, active: THIS, giveUp };
}

const THIS = 'this instance';

/** A store that is this instance's alone. */
export function openedAlone(opened: OpenedStore): Opening {
  return { opened, opening: Promise.resolve(opened), active: THIS, giveUp: () => undefined };
}
