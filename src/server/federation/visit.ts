/**
 * Fetches the authority keys and the feed of one partner, and gives them to the authority, which decides as if an operator
 * had sent them [core-4-13-3].
 */
import { parseJsonBytes } from '../../base/json/bytes.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import type { Runtime } from '../../base/runtime.ts';
import { verifiedFeed } from '../../edge/routes/recognition.ts';
import { followedChain } from '../../edge/routes/treaties.ts';
import { importFeed } from '../../protocol/api/recognition.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { Call } from '../../protocol/contract/calls.ts';
import type { PartnerAddress } from '../../protocol/contract/inputs.ts';
import { receivedChain } from '../../protocol/records/authority-chain.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { RefusalName } from '../../protocol/refusals.ts';
import { LARGE_BODY_BYTES } from '../../protocol/route-description.ts';
import { type Reach, urlProblem } from '../outbound/address.ts';
import type { StrangerClient } from '../outbound/client.ts';

export interface VisitTools {
  readonly call: Call;
  readonly runtime: Runtime;
  readonly client: Pick<StrangerClient, 'exchange'>;
  readonly reach: Reach;
  readonly maxFeedEntries: number;
  readonly abort: AbortSignal;
}

/** What is known of what a partner serves, so that it is not read again. */
export interface Served {
  /** The entity tags of what was accepted, by path. */
  readonly tags: Map<string, string>;
  /** When the newest accepted feed was issued, in milliseconds since the epoch. */
  feedIssuedAt: number | null;
}

/** Why a partner counts as failing. */
export interface Problem {
  readonly text: string;
  /** Whether the partner has answered, and its answer is not accepted. */
  readonly isRefused: boolean;
}

/** A feed is issued again every twelve hours. */
const FEED_LIFETIME_MS = 86_400_000;

export async function visit(
  partner: PartnerAddress,
  served: Served,
  tools: VisitTools,
): Promise<Problem | null> {
  const place = urlProblem(new URL(partner.endpoint), tools.reach);
  if (place !== null) return { text: `its address ${place}`, isRefused: false };
  // The keys come first, because the feed may be signed by a new one.
  const keys = await taken('/authority-keys', partner, served, tools, (document) =>
    follow(document, partner, tools),
  );
  const feed = await taken('/sovereign-revocation-feed', partner, served, tools, (document) =>
    importFrom(document, partner, served, tools),
  );
  return feed ?? keys ?? outdated(served, tools.runtime.now());
}

/** Fetches a document and hands it on if it is new; returns why it was not accepted. */
async function taken(
  path: string,
  { endpoint }: PartnerAddress,
  { tags }: Served,
  { client, abort }: VisitTools,
  take: (document: JsonObject) => Promise<string | null>,
): Promise<Problem | null> {
  const tag = tags.get(path);
  const answer = await client.exchange({
    url: new URL(`${endpoint.replace(/\/+$/, '')}${path}`),
    headers: {
      'User-Agent': 'mesh-na',
      Accept: 'application/json',
      'Accept-Encoding': 'identity',
      ...(tag !== undefined && { 'If-None-Match': tag }),
    },
    mostBytes: LARGE_BODY_BYTES,
    abort,
  });
  if (answer.problem !== null) return { text: answer.problem, isRefused: false };
  if (answer.body === null) return null;
  const document = objectIn(answer.body);
  const text = document === null ? `its ${path} is no JSON object` : await take(document);
  if (text !== null) return { text, isRefused: true };
  if (answer.etag !== undefined) tags.set(path, answer.etag);
  return null;
}

function objectIn(body: Uint8Array): JsonObject | null {
  try {
    const value = parseJsonBytes(body);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

async function importFrom(
  document: JsonObject,
  { subject, endpoint }: PartnerAddress,
  served: Served,
  { call, runtime, maxFeedEntries }: VisitTools,
): Promise<string | null> {
  const body = { feed: document, expected_issuer_sovereign_id: subject };
  const context = { ...runtime, now: runtime.now(), isAllowedRole: () => true, maxFeedEntries };
  const given = importFeed.read({ params: {}, query: {}, body }, context);
  if (!given.ok) return refusalText('its feed is', given);
  const feed = await verifiedFeed(given.value, call);
  const answer = await call('importFetchedFeed', { ...feed, fetched_from: endpoint });
  if (!answer.ok) return refusalText('its feed is', answer);
  served.feedIssuedAt = instantOf(given.value.feed.issued_at);
  return null;
}

/** There is nothing to follow, or the treaty has ended meanwhile. */
const NOTHING_TO_DO: ReadonlySet<RefusalName> = new Set<RefusalName>([
  'nothing_to_follow',
  'treaty_not_found',
  'treaty_revoked',
  'treaty_expired',
]);

async function follow(
  document: JsonObject,
  { treatyIds, endpoint }: PartnerAddress,
  { call, runtime }: VisitTools,
): Promise<string | null> {
  if (receivedChain(document) === null) return 'its keys are no chain of authority keys';
  for (const treaty_id of treatyIds) {
    const sent = { treaty_id, authority_keys: document, root_public_key: null };
    const chain = await followedChain(sent, runtime.now(), call);
    const answer = chain.ok
      ? await call('followFetchedKeys', { ...chain.value, fetched_from: endpoint })
      : chain;
    if (!answer.ok && !NOTHING_TO_DO.has(answer.refusal))
      return refusalText('its keys are', answer);
  }
  return null;
}

function refusalText(what: string, { refusal, details }: Answer & { readonly ok: false }): string {
  const { cause } = details;
  return `${what} refused: ${typeof cause === 'string' ? cause : refusal}`;
}

/** Someone who withholds a newer feed serves an old one. */
function outdated({ feedIssuedAt }: Served, now: number): Problem | null {
  if (feedIssuedAt === null || now - feedIssuedAt <= FEED_LIFETIME_MS) return null;
  return { text: 'its feed is older than a day', isRefused: true };
}
