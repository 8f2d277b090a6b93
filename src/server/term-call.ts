/** The authority, as edges call it during a term of this instance [link-4]. */
import { type Call, onceConfirmed } from '../protocol/contract/calls.ts';
import type { OwnLease } from '../store/open.ts';
import { type LeaseClock, pauseOn } from '../store/postgresql/lease-clock.ts';

/** How often a request that waits for the renewal of the lease looks for it. */
const RENEWAL_MS = 50;

/** `patience` is how many milliseconds a call may wait for the renewal of the lease. */
export function callInTerm(
  call: Call,
  { isHeld, heldSince }: OwnLease,
  clock: LeaseClock,
  patience: number,
): Call {
  const confirmed = onceConfirmed(call, heldSince, clock.elapsed);

  /** While the lease has run out, its renewal may be on its way. */
  async function untilHeld(): Promise<void> {
    const deadline = clock.elapsed() + patience;
    while (!isHeld() && clock.elapsed() < deadline) await pauseOn(clock, RENEWAL_MS);
  }

  return (name, given) =>
    isHeld() || name === 'checkReadiness'
      ? confirmed(name, given)
      : untilHeld().then(() => confirmed(name, given));
}
