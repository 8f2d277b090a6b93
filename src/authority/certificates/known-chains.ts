/**
 * Turns the digest of a chain of authority keys, as nodes report it in heartbeats [authority-keys-2], into a small
 * number, so that remembering it costs two bytes per certificate.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../base/json/write.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';

/** The node has not sent a heartbeat to this process. */
export const NOT_HEARD = 0;
/** The node reported no chain, or one that this authority did not publish. */
const NO_CHAIN = 1;
/** Numbers are kept in 16 bits. A later chain counts as not published until the process restarts. */
const HIGHEST = 0xffff;

export type KnownChains = ReturnType<typeof createKnownChains>;

export function createKnownChains() {
  const numbers = new Map<string, number>();
  /** By number. A chain that is not part of the current one, because a statement was canceled, has length 0. */
  let lengths: (number | null)[] = [null, 0];

  return {
    /** Call with the published chain whenever it changes. */
    publish(chain: readonly AuthoritySuccession[]) {
      lengths = lengths.map((length) => (length === null ? null : 0));
      for (const [index, digest] of digestsOf(chain).entries()) {
        const number = numbers.get(digest) ?? lengths.length;
        if (number > HIGHEST) return;
        numbers.set(digest, number);
        lengths[number] = index + 1;
      }
    },
    /** The number of a reported digest; null if the node reported none. */
    numberOf: (digest: string | null) =>
      digest === null ? NO_CHAIN : (numbers.get(digest) ?? NO_CHAIN),
    /** How many statements of the current chain the node knows; null if it has not sent a heartbeat to this process. */
    lengthOf: (number: number): number | null => lengths[number] ?? null,
  };
}

/** The digest of the chain's first statement, of its first two, and so on; each statement is hashed only once. */
function digestsOf(chain: readonly AuthoritySuccession[]): string[] {
  const hash = createHash('sha256').update('{"successions":[');
  return chain.map((statement, index) => {
    hash.update(`${index === 0 ? '' : ','}${canonicalJson(statement)}`);
    return hash.copy().update(']}').digest('hex');
  });
}
