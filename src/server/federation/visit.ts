/**
 * Fetches the authority keys and the feed of one partner, and gives them to the authority, which decides as if an operator
 * had sent them [core-4-13-3].
 */
import type { PartnerFacts } from '../../authority/host-status.ts';
import { parseJsonBytes } from '../../base/json/bytes.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { followedChain, verifiedFeed } from '../../edge/routes/recognition.ts';
import { importFeed } from '../../protocol/api/recognition.ts';
import type { Answer, Call } from '../../protocol/contract/calls.ts';
import type { PartnerAddress } from '../../protocol/contract/inputs.ts';
import { receivedChain } from '../../protocol/records/authority-chain.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { RefusalName } from '../../protocol/refusals.ts';
import { LARGE_BODY_BYTES } from '../../protocol/route-description.ts';
import { createStrangerClient } from '../outbound/client.ts';
import { createLookup, type Reach, urlProblem } from '../outbound/lookup.ts';

export interface VisitOptions {
  readonly reach: Reach;
  readonly maxFeedEntries: number;
}

/** What is known of what a partner serves, so that it is not read again. */
export interface Served {
  /** By the treaties with these ids: others may accept what these have refused, or have to follow what these have. */
  readonly treatyIds: readonly string[];
  /** The entity tags of what was accepted, by path. */
  readonly tags: { [path: string]: string };
  /** When the newest accepted feed was issued, in milliseconds since the epoch. */
  feedIssuedAt: number | null;
}

export const NOTHING_SERVED: Served = { treatyIds: [], tags: {}, feedIssuedAt: null };

/** Why a partner counts as failing, and what it has served. */
export interface Visited extends Pick<PartnerFacts, 'problem'> {
  readonly served: Served;
}

/** For each of the two documents of a partner. */
const LIMIT_MS = 5000;
/** A feed is issued again every twelve hours. */
const FEED_LIFETIME_MS = 86_400_000;

export function createVisitor({ reach, maxFeedEntries }: VisitOptions, call: Call) {
  const stopped = new AbortController();
  const client = createStrangerClient({ lookup: createLookup(reach), limitMs: LIMIT_MS });

  /** Fetches a document and hands it on if it is new, with the function that says why it is not accepted. */
  async function taken(
    path: string,
    { endpoint }: PartnerAddress,
    { tags }: Served,
    refusalOf: (document: JsonObject) => Promise<string | null>,
  ): Promise<Visited['problem']> {
    const { [path]: tag } = tags;
    const answer = await client.exchange({
      url: new URL(`${endpoint.replace(/\/+$/, '')}${path}`),
      headers: {
        'User-Agent': 'mesh-na',
        Accept: 'application/json',
        'Accept-Encoding': 'identity',
        ...(tag !== undefined && { 'If-None-Match': tag }),
      },
      mostBytes: LARGE_BODY_BYTES,
      abort: stopped.signal,
    });
    if (answer.problem !== null) return { text: answer.problem, isRefused: false };
    if (answer.body === null) return null;
    const document = objectIn(answer.body);
    const text = document ? await refusalOf(document) : `its ${path} is no JSON object`;
    if (text !== null) return { text, isRefused: true };
    if (answer.etag !== undefined) tags[path] = answer.etag;
    return null;
  }

  async function importFrom(
    feed: JsonObject,
    { subject, endpoint }: PartnerAddress,
    served: Served,
    now: number,
  ): Promise<string | null> {
    const body = { feed, expected_issuer_sovereign_id: subject };
    const context = { ...systemRuntime, now, isAllowedRole: () => true, maxFeedEntries };
    const given = importFeed.read({ params: {}, query: {}, body }, context);
    if (!given.ok) return refusalText('its feed is', given);
    const verified = await verifiedFeed(given.value, call);
    const answer = await call('importFetchedFeed', { ...verified, fetched_from: endpoint });
    if (!answer.ok) return refusalText('its feed is', answer);
    served.feedIssuedAt = instantOf(given.value.feed.issued_at);
    return null;
  }

  async function follow(
    authority_keys: JsonObject,
    { treatyIds, endpoint }: PartnerAddress,
    now: number,
  ): Promise<string | null> {
    if (receivedChain(authority_keys) === null) return 'its keys are no chain of authority keys';
    let refused: string | null = null;
    for (const treaty_id of treatyIds) {
      if (stopped.signal.aborted) break;
      const sent = { treaty_id, authority_keys, root_public_key: null };
      const chain = await followedChain(sent, now, call);
      const answer = chain.ok
        ? await call('followFetchedKeys', { ...chain.value, fetched_from: endpoint })
        : chain;
      if (!answer.ok && !NOTHING_TO_DO.has(answer.refusal)) {
        refused ??= refusalText('its keys are', answer);
      }
    }
    return refused;
  }

  return {
    async visit(partner: PartnerAddress, before: Served, now: number): Promise<Visited> {
      const { treatyIds } = partner;
      const isSame = before.treatyIds.join() === treatyIds.join();
      const served = { ...before, treatyIds, tags: isSame ? { ...before.tags } : {} };
      const place = urlProblem(new URL(partner.endpoint), reach);
      if (place !== null) {
        return { problem: { text: `its address ${place}`, isRefused: false }, served };
      }
      // The keys come first, because the feed may be signed by a new one.
      const keys = await taken('/authority-keys', partner, served, (document) =>
        follow(document, partner, now),
      );
      const feed = await taken('/sovereign-revocation-feed', partner, served, (document) =>
        importFrom(document, partner, served, now),
      );
      return { problem: feed ?? keys ?? outdated(served, now), served };
    },
    /** Ends what is being fetched. */
    stop(): void {
      stopped.abort();
      client.close();
    },
  };
}

function objectIn(body: Uint8Array): JsonObject | null {
  try {
    const value = parseJsonBytes(body);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** There is nothing to follow, or the treaty has ended meanwhile. */
const NOTHING_TO_DO: ReadonlySet<RefusalName> = new Set<RefusalName>([
  'nothing_to_follow',
  'treaty_not_found',
  'treaty_revoked',
  'treaty_expired',
]);

function refusalText(what: string, { refusal, details }: Answer & { readonly ok: false }): string {
  const { cause } = details;
  return `${what} refused: ${typeof cause === 'string' ? cause : refusal}`;
}

/** Someone who withholds a newer feed serves an old one, or one that was signed while the clock was ahead. */
function outdated({ feedIssuedAt }: Served, now: number): Visited['problem'] {
  const age = now - (feedIssuedAt ?? now);
  if (Math.abs(age) <= FEED_LIFETIME_MS) return null;
  const text = age > 0 ? 'its feed is older than a day' : 'its feed is dated more than a day ahead';
  return { text, isRefused: true };
}
