/** Treaties that have not followed their subject to its current key, although another treaty here has [core-4-13-1]. */
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import { isLifecycleActive } from './lifecycle.ts';
import type { Edge } from './recognition-index.ts';

export interface TreatyBehind {
  readonly treatyId: string;
  readonly treaty: Treaty;
  /** The statements of the subject that another treaty has followed. */
  readonly known: Chain;
  /** Whether the treaty accepts a key of the subject that was stolen. */
  readonly acceptsStolenKey: boolean;
}

type Chain = readonly AuthoritySuccession[];

const TREATIES_PER_SLICE = 1000;

/** Treaties that are in force, yielding after each slice. */
export function* treatiesBehind(
  edges: readonly Edge[],
  now: number,
): Generator<void, TreatyBehind[]> {
  const known = yield* knownChains(edges);
  if (known.size === 0) return [];
  const behind: TreatyBehind[] = [];
  for (const [index, { treatyId, treaty }] of edges.entries()) {
    if (index % TREATIES_PER_SLICE === TREATIES_PER_SLICE - 1) yield;
    if (!isLifecycleActive(treaty, now)) continue;
    const chain = known.get(treaty.subject)?.find((each) => isChainOf(treaty, each)) ?? [];
    if (treaty.followed.length >= chain.length) continue;
    const acceptsStolenKey = chain.some(
      ({ kind, from_key }) => kind === 'compromise' && treaty.subjectKeys.includes(from_key),
    );
    behind.push({ treatyId, treaty, known: chain, acceptsStolenKey });
  }
  return behind;
}

/** The longest chains that were followed, by subject; a name may belong to networks with different root keys. */
function* knownChains(edges: readonly Edge[]): Generator<void, ReadonlyMap<string, Chain[]>> {
  const known = new Map<string, Chain[]>();
  for (const [index, { treaty }] of edges.entries()) {
    if (index % TREATIES_PER_SLICE === TREATIES_PER_SLICE - 1) yield;
    const { subject, followed } = treaty;
    if (followed.length === 0) continue;
    const chains = known.get(subject) ?? [];
    const same = chains.findIndex((chain) => rootOf(chain) === rootOf(followed));
    if (same === -1) chains.push(followed);
    else if ((chains[same]?.length ?? 0) < followed.length) chains[same] = followed;
    known.set(subject, chains);
  }
  return known;
}

function rootOf(chain: Chain): string | undefined {
  return chain[0]?.root_public_key;
}

/** A treaty that has followed nothing yet belongs to the chain if it names one of its keys. */
function isChainOf({ followed, subjectKeys }: Treaty, chain: Chain): boolean {
  if (followed.length > 0) return rootOf(followed) === rootOf(chain);
  return chain.some(
    ({ from_key, to_key }) => subjectKeys.includes(from_key) || subjectKeys.includes(to_key),
  );
}
