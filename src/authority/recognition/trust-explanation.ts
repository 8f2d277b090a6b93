/**
 * Answers trust questions beyond the current path [core-6-3-1]: at another time, without certain treaties, and why one
 * sovereign does or does not trust another. An explanation says how long the trust lasts and under which terms, which
 * treaties were considered and which test they failed, and the smallest set of treaties that the trust depends on.
 */
import { lastInstantInForce } from '../../../machines/recognition-treaty.ts';
import { parseJson } from '../../base/json/parse.ts';
import { isJsonObject } from '../../base/json/value.ts';
import { canonicalJson, JsonText, type Writable } from '../../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import type { RevocationKnowledge } from '../../protocol/api/verification.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { MAX_PATH_NODES } from '../../protocol/records/record.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type {
  Candidate,
  ConsideredTrust,
  FailedTest,
  TreatyEnds,
  TrustCut,
  TrustExplanation,
  TrustPath,
} from '../../protocol/rows/graph.ts';
import type { LifecycleState } from '../../protocol/rows/recognition.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { Sliced } from '../subjects/sliced.ts';
import { isRevokedHere } from './attestations.ts';
import { publishGraph } from './graph.ts';
import { lifecycleOf } from './lifecycle.ts';
import { compareEdges, type Edge } from './recognition-index.ts';
import { isTreatyRevoked, ownTreatyKeys } from './treaties.ts';
import { smallestCut } from './trust-cut.ts';
import {
  EDGES_PER_SLICE,
  hopsFrom,
  hopsTo,
  type Lasting,
  type Reach,
  type TrustGraph,
  UNREACHED,
} from './trust-graph.ts';
import { findTrustPathIn, type TrustView, trustView } from './trust-path.ts';

/** The most candidates that are listed; the rest are only counted. */
export const MAX_CANDIDATES = 64;
/** The most treaties in a smallest set; larger sets are not determined. */
export const MAX_CUT = 256;
/** The most characters of treaty text that are parsed to find the terms. */
const MAX_TERMS_CHARACTERS = 64 * 1024;

/** The result of the search for a path. */
export type FoundPath = Pick<TrustPath, 'trusted' | 'path' | 'hop_count'>;

export interface TrustSearch {
  readonly graph: TrustGraph;
  readonly view: TrustView;
  readonly found: FoundPath;
  /** The numbers of the sovereigns; null if a sovereign has no treaties. */
  readonly source: number | null;
  readonly target: number | null;
}

/** The explanation as returned to the client, with the terms already serialized. */
export type ExplanationText = Omit<TrustExplanation, 'terms'> & {
  readonly terms: readonly { readonly treaty_id: string; readonly scope: JsonText | null }[];
};

/** Works in slices; the graph is a copy, so it does not change in between. */
export function* explainTrust(search: TrustSearch): Generator<void, ExplanationText> {
  const { graph, view } = search;
  const lasting = yield* lastingOf(search);
  const reach: Reach = { graph, lasting, until: view.at };
  const trustedUntil = yield* lastInstantOfTrust(search, reach);
  const terms = termsOf(search);
  yield;
  const candidates = yield* candidatesOf(search, reach);
  const cut = yield* cutOf(search, reach);
  return {
    trusted_until: formatInstantIfAny(trustedUntil),
    path_until: pathUntil(search),
    terms,
    ...candidates,
    cut,
  };
}

function* lastingOf({ graph, view }: TrustSearch): Generator<void, Lasting> {
  if (view.isPresent) return graph.lasting;
  const lasting = new Float64Array(graph.edges.length);
  for (const [number, edge] of graph.edges.entries()) {
    const isInForce = view.isInForce(edge);
    lasting[number] = isInForce ? lastInstantInForce(edge.treaty) : Number.NEGATIVE_INFINITY;
    if (number % EDGES_PER_SLICE === EDGES_PER_SLICE - 1) yield;
  }
  return lasting;
}

/**
 * As time passes, treaties only cease to be in force. The trust therefore lasts until the latest instant at which there
 * is still a path over treaties in force, which is the last instant of one of them.
 */
function* lastInstantOfTrust(
  { found, source, target }: TrustSearch,
  reach: Reach,
): Generator<void, number | null> {
  if (!found.trusted || source === null || target === null) return null;
  const choices = reach.lasting.toSorted();
  yield;
  let low = choices.findIndex((instant) => instant >= reach.until);
  let high = choices.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    const until = choices[middle] as number;
    const isReached = hopsFrom({ ...reach, until }, source, target)[target] !== UNREACHED;
    if (isReached) low = middle;
    else high = middle - 1;
    yield;
  }
  return choices[low] as number;
}

/** The path remains the first of the shortest paths as long as all of its treaties are in force. */
function pathUntil({ graph, found }: TrustSearch): string | null {
  if (!found.trusted) return null;
  const instants = pathEdges(graph, found).map(({ treaty }) => lastInstantInForce(treaty));
  return formatInstant(instants.reduce((first, instant) => Math.min(first, instant)));
}

/** The treaties on the path, in order. */
function pathEdges(graph: TrustGraph, { path }: FoundPath): Edge[] {
  return numbersOf(graph, path).map((number) => graph.edges[number] as Edge);
}

function numbersOf({ numberOf }: TrustGraph, path: FoundPath['path']): number[] {
  return path.map(({ treaty_id }) => numberOf.get(treaty_id) as number);
}

/** The scope of each treaty on the path; null once too much text would have to be parsed. */
function termsOf({ graph, found }: TrustSearch): ExplanationText['terms'] {
  if (!found.trusted) return [];
  let left = MAX_TERMS_CHARACTERS;
  return pathEdges(graph, found)
    .slice(0, MAX_PATH_NODES)
    .map(({ treatyId, treaty }) => {
      left -= treaty.json.length;
      return { treaty_id: treatyId, scope: left < 0 ? null : scopeOf(treaty.json) };
    });
}

function scopeOf(json: string): JsonText | null {
  const record = parseJson(json);
  const scope = isJsonObject(record) ? record.scope : undefined;
  return scope === undefined ? null : new JsonText(canonicalJson(scope));
}

/** A treaty that is not on the path, and how close it comes to establishing the trust. */
interface Ranked {
  readonly edge: Edge;
  /** Whether `from` reaches the treaty's issuer, and whether the treaty's subject leads to `to`. */
  readonly fits: 'both' | 'issuer' | 'subject';
  /** The number of hops of the path over this treaty or, if only one end fits, of the part of the path that exists. */
  readonly hops: number;
}

function* candidatesOf(
  search: TrustSearch,
  reach: Reach,
): Generator<void, Pick<TrustExplanation, 'candidates' | 'candidate_count' | 'more_candidates'>> {
  const { graph, found } = search;
  const ranked = ranking(search, reach);
  yield;
  const onPath = new Set(found.trusted ? numbersOf(graph, found.path) : []);
  const nearest: Ranked[] = [];
  let count = 0;
  for (let number = 0; number < graph.edges.length; number += 1) {
    const candidate = ranked(number);
    if (candidate !== null && !onPath.has(number)) {
      count += 1;
      keepNearest(nearest, candidate);
    }
    if (number % EDGES_PER_SLICE === EDGES_PER_SLICE - 1) yield;
  }
  return {
    candidates: nearest.map((candidate) => candidateRow(search, candidate)),
    candidate_count: count,
    more_candidates: count - nearest.length,
  };
}

/** A treaty is a candidate if `from` reaches its issuer, or if its subject leads to `to`. */
function ranking({ graph, source, target }: TrustSearch, reach: Reach) {
  const isSame = source === target;
  const reached = source === null || isSame ? null : hopsFrom(reach, source, target);
  const leading = target === null || isSame ? null : hopsTo(reach, target, source);
  return (number: number): Ranked | null => {
    const from = graph.from[number] as number;
    const to = graph.to[number] as number;
    // A path never continues beyond the target or returns to the source.
    if (from === target || to === source) return null;
    const before = reached?.[from] ?? UNREACHED;
    const after = leading?.[to] ?? UNREACHED;
    if (before === UNREACHED && after === UNREACHED) return null;
    const edge = graph.edges[number] as Edge;
    if (before === UNREACHED) return { edge, fits: 'subject', hops: after + 1 };
    if (after === UNREACHED) return { edge, fits: 'issuer', hops: before + 1 };
    return { edge, fits: 'both', hops: before + 1 + after };
  };
}

/** Inserts the candidate into the sorted list, and drops the last one if the list is too long. */
function keepNearest(nearest: Ranked[], candidate: Ranked): void {
  const last = nearest[MAX_CANDIDATES - 1];
  if (last !== undefined && compareRanked(last, candidate) < 0) return;
  let at = nearest.length;
  while (at > 0 && compareRanked(nearest[at - 1] as Ranked, candidate) > 0) at -= 1;
  nearest.splice(at, 0, candidate);
  if (nearest.length > MAX_CANDIDATES) nearest.pop();
}

const ORDER = { both: 0, issuer: 1, subject: 2 } as const;

function compareRanked(a: Ranked, b: Ranked): number {
  return ORDER[a.fits] - ORDER[b.fits] || a.hops - b.hops || compareEdges(a.edge, b.edge);
}

function candidateRow(search: TrustSearch, candidate: Ranked): Candidate {
  const { edge, fits, hops } = candidate;
  const { at } = search.view;
  const treaty = search.view.treatyOf(edge);
  const { revoked_at, revocation_reason, expires_at } = lifecycleOf(treaty, at);
  return {
    ...endsOf(edge),
    failed_test: failedTest(search, candidate),
    hops: fits === 'both' ? hops : null,
    valid_from: treaty.validFrom,
    expires_at,
    revoked_at,
    revocation_reason,
  };
}

/** The first test that the treaty fails. */
function failedTest({ view, found }: TrustSearch, { edge, fits, hops }: Ranked): FailedTest {
  const absence = view.absence(edge);
  if (absence !== null) return absence;
  if (!view.isInForce(edge)) return endedState(lifecycleOf(view.treatyOf(edge), view.at).state);
  if (fits === 'subject') return 'not_reached';
  if (fits === 'issuer') return 'leads_elsewhere';
  return hops > found.hop_count ? 'longer' : 'later';
}

function endedState(state: LifecycleState): 'revoked' | 'replaced' | 'expired' {
  if (state === 'active' || state === 'expiring_soon') throw new Error('The treaty is in force');
  return state;
}

function* cutOf(
  { graph, found, source, target }: TrustSearch,
  reach: Reach,
): Generator<void, TrustCut> {
  if (!found.trusted || source === null || target === null) {
    return { state: 'none', size: 0, treaties: [] };
  }
  const cut = yield* smallestCut(reach, source, target, MAX_CUT);
  if (cut === null) return { state: 'indeterminate', size: MAX_CUT + 1, treaties: [] };
  const edges = cut.map((number) => graph.edges[number] as Edge).sort(compareEdges);
  return { state: 'found', size: edges.length, treaties: edges.map(endsOf) };
}

function endsOf({ treatyId, from, to }: Edge): TreatyEnds {
  return { treaty_id: treatyId, from: from.id, to: to.id };
}

export const considerTrust: Handler<'considerTrust'> = (na, question, at) => {
  assertAnswerable(na, question, at);
  if (!question.explain || isUnknown(na, question)) return answerTo(na, question, at);
  return new Sliced(explained(na, question));
};

function assertAnswerable(
  na: Authority,
  { asOf, without }: CallInput<'considerTrust'>,
  at: number,
): void {
  if (asOf !== null && asOf > at) throw new Refusal('invalid_as_of');
  const unknown = without.find((id) => na.recognition.edge(id) === undefined);
  if (unknown !== undefined) throw new Refusal('treaty_not_found', { treaty_id: unknown });
}

/** If the graph keeps changing while it is built in slices, its digest is computed without a pause. */
const MOST_ATTEMPTS = 4;

/** Path, digest and explanation all describe the same state of the treaties, even though the work pauses in between. */
function* explained(
  na: Authority,
  question: CallInput<'considerTrust'>,
): Generator<void, Writable> {
  let graph = yield* na.graph.copy.current();
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    if (na.graph.digest.isKnown(na.runtime.now())) break;
    yield* publishGraph(na);
    graph = yield* na.graph.copy.current();
  }
  const now = na.runtime.now();
  const answer = answerTo(na, question, now);
  const { trusted, path, hop_count } = answer;
  const explanation = yield* explainTrust({
    graph,
    view: trustView(now, question.asOf, new Set(question.without)),
    found: { trusted, path, hop_count },
    source: na.recognition.sovereign(question.from)?.number ?? null,
    target: na.recognition.sovereign(question.to)?.number ?? null,
  });
  return { ...answer, explanation };
}

/** The answer is unknown before the first treaty was issued, because there are no records of that time. */
function isUnknown(na: Authority, { asOf }: CallInput<'considerTrust'>): boolean {
  if (asOf === null) return false;
  const first = na.recognition.edges()[0];
  return first === undefined || asOf < first.treaty.issuedAt;
}

function answerTo(
  na: Authority,
  question: CallInput<'considerTrust'>,
  now: number,
): ConsideredTrust {
  const { from, to, asOf, without, explain } = question;
  const first = na.recognition.edges()[0];
  const isIndeterminate = isUnknown(na, question);
  const view = trustView(now, asOf, new Set(without));
  return {
    ...(isIndeterminate
      ? { from, to, trusted: false, reason: 'indeterminate', path: [], hop_count: 0 }
      : findTrustPathIn(view, na.recognition, from, to)),
    as_of: formatInstantIfAny(asOf),
    evaluated_at: formatInstant(view.at),
    known_from: formatInstantIfAny(first?.treaty.issuedAt ?? null),
    without: [...without],
    graph_digest: na.graph.digest.at(now),
    ...(explain && isIndeterminate && { explanation: null }),
  };
}

export const askRevocations: Handler<'askRevocations'> = (na, { attestation, treaty }, at) => {
  const named = new Set(treaty === null ? [] : ownTreatyKeys(na, treaty.issuer, at));
  const knowledge: RevocationKnowledge = {
    attestation_revoked_here: attestation !== null && isRevokedHere(na, attestation.id),
    attestation_revoked_by_feed:
      attestation !== null && na.recognition.isRevoked(attestation.issuer, attestation.id),
    treaty_revoked: treaty !== null && isTreatyRevoked(na, treaty.id),
    treaty_keys: treaty === null ? [] : treaty.issuerKeys.filter((key) => named.has(key)),
  };
  return { ...knowledge };
};
