/** Whether the keys of a succession are where they have to be [authority-keys-8]. */
import type { KeyChain } from '../../authority/derived/authority-keys.ts';
import { fromNow } from '../../base/duration.ts';
import { type Finding, fine, warning, wrong } from './finding.ts';

export interface KeysHere {
  /** The keys that a service started here could sign with, the current one first. */
  readonly held: readonly string[];
  /** The key in the genesis block. */
  readonly named: string;
  readonly isServing: boolean;
  readonly now: number;
}

/** A staged key takes over within seconds of its time. */
const PATIENCE_MS = 60_000;
const PLACE =
  'Copy the file that mesh-na authority-key prepare wrote next to the key of the authority, or give it to the signer as --next-key';

export function checkSuccession(
  { staged, previous, has }: KeyChain,
  { held, named, isServing, now }: KeysHere,
): Finding {
  if (staged !== null) {
    const { publicKey, activatesAt } = staged;
    const key = `The next authority key ${publicKey}`;
    if (!held.includes(publicKey)) return wrong('succession', `${key} is not held here`, PLACE);
    if (now < activatesAt + PATIENCE_MS) {
      return fine(
        'succession',
        `${key} is held here, and takes over ${fromNow(activatesAt - now)}`,
      );
    }
    const late = `${key} should have taken over ${fromNow(activatesAt - now)}`;
    return isServing
      ? wrong('succession', late, 'Check the clock and the log of the authority')
      : warning('succession', `${late}; the next start activates it`, 'Start the authority');
  }
  if (previous !== null) {
    const { publicKey, overlapUntil } = previous;
    const key = `The previous authority key ${publicKey}`;
    return held.includes(publicKey)
      ? fine('succession', `${key} signs, too, and stops ${fromNow(overlapUntil - now)}`)
      : wrong('succession', `${key} must still sign, but is not held here`, 'Restore its key file');
  }
  const unknown = held.slice(1).find((key) => key !== named && !has(key));
  return unknown === undefined
    ? fine('succession', 'No succession is under way')
    : warning(
        'succession',
        `There is a next key ${unknown}, but no succession to it is staged`,
        'Stage it with mesh-na authority-key stage, or delete the key file if nothing was signed for it',
      );
}
