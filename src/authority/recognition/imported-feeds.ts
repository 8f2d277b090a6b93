/**
 * The revoked ids of imported feeds. Each import is one subject, stored in one of its issuer's slots. An import
 * frees its slot once later imports name all of its ids, so a feed that only grows needs two slots.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  ImportedFeed,
  ImportedFeedRefusal,
  RevocationImport,
} from '../../../machines/revocation-feed.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import type { Fetched, VerifiedFeed } from '../../protocol/contract/inputs.ts';
import { Refusal, type RefusalName } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { refusalIn, type Subject } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { ImportLayer, RecognitionIndex } from './recognition-index.ts';
import { treatyKeysOf } from './treaties.ts';

interface Slots {
  next: number;
  /** The indexing that is in progress: imports of one issuer are indexed one after another. */
  underWay: Promise<void> | null;
  /** Imports by slot. */
  readonly held: Map<string, ImportLayer>;
}

/** An issuer whose feeds only grow needs two. */
const MOST_FETCHED_SLOTS = 8;

export function createImportedFeeds(index: RecognitionIndex, changed: () => void) {
  const slotsByIssuer = new Map<string, Slots>();
  /** Loaded imports by slot: while loading, a later import may replace one in the same slot. */
  let loaded: Map<string, RevocationImport> | null = new Map();

  function slotsOf(issuer: string): Slots {
    const known = slotsByIssuer.get(issuer) ?? { next: 0, underWay: null, held: new Map() };
    slotsByIssuer.set(issuer, known);
    return known;
  }

  function begin(slot: string, { issuer, ...about }: RevocationImport): ImportLayer {
    const layer = index.beginImport({ issuer, ...about });
    slotsOf(issuer).held.set(slot, layer);
    return layer;
  }

  function end(layer: ImportLayer): void {
    index.endImport(layer);
    changed();
  }

  async function absorbSlices(layer: ImportLayer, rows: readonly string[]): Promise<void> {
    for (const slice of rows) {
      index.absorb(layer, rowsIn(slice));
      await nextTurn();
    }
    end(layer);
  }

  return {
    /** The id under which the issuer's next import is stored. */
    takeSlot(issuer: string): string {
      const slots = slotsOf(issuer);
      for (const [slot, layer] of slots.held) {
        if (!isFree(layer)) continue;
        slots.held.delete(slot);
        return slot;
      }
      const slot = `${sha256Hex(issuer)}.${slots.next}`;
      slots.next += 1;
      return slot;
    },
    /** Whether no further import may be fetched, because too many of the issuer name ids that no later one names. */
    isFull(issuer: string): boolean {
      const held = [...slotsOf(issuer).held.values()];
      return held.filter((layer) => !isFree(layer)).length >= MOST_FETCHED_SLOTS;
    },
    /** Indexes an import; returns a promise if it is long. All of its ids become revoked at the same moment. */
    absorb(slot: string, stored: RevocationImport): Promise<void> | undefined {
      const layer = begin(slot, stored);
      const slots = slotsOf(stored.issuer);
      if (slots.underWay === null && stored.rows.length <= 1) {
        for (const slice of stored.rows) index.absorb(layer, rowsIn(slice));
        end(layer);
        return undefined;
      }
      const before = slots.underWay ?? Promise.resolve();
      const current = before
        .then(() => absorbSlices(layer, stored.rows))
        .finally(() => {
          if (slots.underWay === current) slots.underWay = null;
        });
      slots.underWay = current;
      return current;
    },
    /** Loads an import from the store. */
    load(slot: string, { context }: Subject<'revocation-import'>) {
      loaded?.set(slot, context);
    },
    /** Indexes the loaded imports. Call before anything is decided. */
    endLoading() {
      for (const [slot, stored] of [...(loaded ?? [])].sort(bySlot)) {
        const slots = slotsOf(stored.issuer);
        slots.next = Math.max(slots.next, Number(slot.slice(slot.indexOf('.') + 1)) + 1);
        const layer = begin(slot, stored);
        for (const slice of stored.rows) index.absorb(layer, rowsIn(slice));
        end(layer);
      }
      loaded = null;
    },
  };
}

/** Whether later imports name all of its ids. */
function isFree({ isVisible, owned }: ImportLayer): boolean {
  return isVisible && owned === 0;
}

function bySlot([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function rowsIn(slice: string): readonly (readonly [string, string | null])[] {
  return JSON.parse(slice);
}

/** The keys that verify an issuer's feed if the importer does not name any. */
export const treatyKeys: Handler<'treatyKeys'> = (na, { issuer }, at) => [
  ...new Set(treatyKeysOf(na, issuer, at)),
];

/**
 * Imports another sovereign's revocation feed [core-4-14]. All its ids are stored as one subject, exactly as the edge
 * serialized them. After the commit, they are indexed in slices, and the answer waits for that.
 */
export const importFeed = (
  na: Authority,
  unit: UnitOfWork,
  feed: CallInput<'importFeed'> & Partial<Fetched>,
) => {
  const { issuer, feedId, revokedCount, rows, issuer_public_keys: given } = feed;
  refusePrivateKeys(na, given ?? []);
  const keys = given ?? treatyKeysOf(na, issuer, unit.at);
  if (keys.length === 0) {
    throw new Refusal('missing_issuer_public_keys', { issuer_sovereign_id: issuer });
  }
  if ((feed.expected_issuer_sovereign_id ?? issuer) !== issuer) {
    reject('wrong_issuer', 'wrong_issuer');
  }
  const sequence = String(feed.sequence);
  const imported: ImportedFeed = { sequence, feedId, revokedCount, importedAt: unit.at, issuer };
  const refused = refusalIn(
    unit.send('revocation-feed', sha256Hex(issuer), {
      type: 'import',
      feed: imported,
      signature: judgeSignature(feed, keys),
    }),
  );
  if (refused !== null) reject(refused.refusal, REASONS[refused.refusal]);
  if (rows.length > 0) {
    const slot = na.importedFeeds.takeSlot(issuer);
    const stored = { issuer, feedId, sequence, revokedAt: unit.at, rows };
    unit.send('revocation-import', slot, { type: 'record', record: stored });
    unit.whenCommitted(() => na.importedFeeds.absorb(slot, stored));
  }
  const about = { ...detailsOf(feed), revoked_count: revokedCount };
  unit.audit('sovereign_revocation_feed_imported', { ...about, ...fetchedFrom(feed) });
  return { accepted: true, reason: 'accepted', ...about };

  /** A refused one that was fetched is not audited, because a stranger would make the log grow. */
  function reject(refusal: RefusalName, reason: string): never {
    if (feed.fetched_from === undefined) {
      unit.auditRefusal('sovereign_revocation_feed_rejected', { ...detailsOf(feed), reason });
    }
    throw new Refusal(refusal, detailsOf(feed));
  }
};

/** Imports a feed that was fetched, unless it is the one that was imported last. */
export const importFetchedFeed: Handler<'importFetchedFeed'> = (na, unit, feed) => {
  const { issuer, feedId, sequence } = feed;
  const known = unit.current('revocation-feed', sha256Hex(issuer))?.context;
  const isKnown = known?.feedId === feedId && known.sequence === String(sequence);
  // Without the signature, anyone who answers for the issuer could say that an old feed was issued just now.
  const isGenuine = () => judgeSignature(feed, treatyKeysOf(na, issuer, unit.at)) === 'valid';
  if (isKnown && issuer === feed.expected_issuer_sovereign_id && isGenuine()) return null;
  if (na.importedFeeds.isFull(issuer)) {
    throw new Refusal('invalid_sovereign_revocation_feed', { cause: 'ids_omitted' });
  }
  return importFeed(na, unit, feed);
};

/** How an audit entry says that nobody sent what was decided on. */
export function fetchedFrom({ fetched_from }: Partial<Fetched>): Partial<Fetched> {
  return fetched_from === undefined ? {} : { fetched_from };
}

/** The edge has already verified the signature; this checks whether the key is an accepted one. */
function judgeSignature({ isSigned, verifiedUnder }: VerifiedFeed, keys: readonly string[]) {
  if (!isSigned) return 'missing_signature';
  return verifiedUnder !== null && keys.includes(verifiedUnder) ? 'valid' : 'invalid_signature';
}

const REASONS = {
  stale_sequence: 'stale_sequence',
  missing_feed_signature: 'missing_signature',
  invalid_feed_signature: 'invalid_signature',
} as const satisfies Record<ImportedFeedRefusal, string>;

function detailsOf({ feedId, issuer, sequence }: VerifiedFeed) {
  return { feed_id: feedId, issuer_sovereign_id: issuer, sequence };
}
