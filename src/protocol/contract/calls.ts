/**
 * All calls from the edge to the authority, each with its input and access. Access is declared only here: routes derive
 * their access class from it, and the authority admits callers by it.
 */
import type { JsonObject } from '../../base/json/value.ts';
import type { InputOf } from '../api/define.ts';
import type { FurtherQuestion } from '../api/graph.ts';
import type { Input } from '../api/read.ts';
import { API, type Api, type OperationName } from '../api/table.ts';
import type { RevocationQuestion } from '../api/verification.ts';
import type { RefusalName } from '../refusals.ts';
import type { HistoryPart } from '../rows/history.ts';
import type { NodeClaim, OperatorClaim, Tier } from './claims.ts';
import type {
  Fetched,
  FollowedChain,
  OpenWebhooks,
  PageRequest,
  ReadEvents,
  RegisterAgent,
  RemoveAgent,
  VerifiedFeed,
  WebhookCursors,
} from './inputs.ts';

type CallAccess =
  | 'public'
  /** Called only by other parts of this service; no route exposes it. */
  | 'internal'
  /** The caller proves possession of a node key. */
  | 'node'
  | 'operator'
  | 'operator-privileged';

/** Commands change state; queries read committed state and change nothing. */
type CallKind = 'command' | 'query' | 'list';

interface Declaration<
  CallInput = unknown,
  Access extends CallAccess = CallAccess,
  Kind extends CallKind = CallKind,
> {
  readonly access: Access;
  readonly kind: Kind;
  /** Never set; it only carries the type of the input. */
  readonly input?: CallInput;
}

/** Declares calls of one access and kind; each then adds the type of its input. */
function declaredAs<Access extends CallAccess, Kind extends CallKind>(access: Access, kind: Kind) {
  return <CallInput>(): Declaration<CallInput, Access, Kind> => ({ access, kind });
}

const command = declaredAs('public', 'command');
const query = declaredAs('public', 'query');
const internalCommand = declaredAs('internal', 'command');
const internalQuery = declaredAs('internal', 'query');
const standardQuery = declaredAs('operator', 'query');

/** The inputs of operations of which the edge works something out first. */
export interface Prepared {
  readonly followTreaty: Omit<InputOf<Api['followTreaty']>, 'authority_keys'> & FollowedChain;
  readonly importFeed: Omit<InputOf<Api['importFeed']>, keyof VerifiedFeed | 'feed'> & VerifiedFeed;
  readonly registerAgent: RegisterAgent;
  readonly removeAgent: RemoveAgent;
  readonly trustPath: { readonly from: string; readonly to: string };
  readonly countNodes: null;
}

/** What a node sends, with its proof in place of the keys that it names. */
type ProvenInput<Name extends OperationName> = Omit<
  InputOf<Api[Name]>,
  'node_public_key' | 'session_public_key'
> & { readonly node: NodeClaim };

type OperationInput<Name extends OperationName> = Name extends keyof Prepared
  ? Prepared[Name]
  : Api[Name]['access'] extends 'node'
    ? ProvenInput<Name>
    : InputOf<Api[Name]> & (Api[Name]['kind'] extends 'list' ? PageRequest : unknown);

/** The operations that the authority answers, by their names. */
type OperationCalls = {
  readonly [Name in OperationName as Api[Name]['kind'] extends CallKind
    ? Name
    : never]: Declaration<
    OperationInput<Name>,
    Api[Name]['access'] extends infer Allowed extends CallAccess ? Allowed : 'public',
    Api[Name]['kind'] extends infer Kind extends CallKind ? Kind : never
  >;
};

const OPERATION_CALLS = Object.fromEntries(
  Object.entries(API)
    .filter(([, { kind }]) => kind !== 'document' && kind !== 'verification')
    .map(([name, { access, kind }]) => {
      // With the headers of an operator, the edge makes another call.
      const admitted = access === 'public-or-operator' ? 'public' : access;
      return [name, { access: admitted, kind }];
    }),
) as unknown as OperationCalls;

export const CALLS = {
  ...OPERATION_CALLS,

  openRoster: standardQuery<null>(),
  readRoster: internalQuery<number>(),
  closeRoster: internalQuery<number>(),

  treatyPin: query<{ readonly treatyId: string }>(),

  countAgents: query<null>(),
  treatyKeys: query<{ readonly issuer: string }>(),
  askRevocations: query<RevocationQuestion>(),
  considerTrust: query<{ readonly from: string; readonly to: string } & FurtherQuestion>(),
  checkReadiness: query<null>(),

  ensurePolicy: command<null>(),
  refreshCrl: command<null>(),
  refreshBulletin: command<null>(),
  refreshFeed: command<null>(),
  refreshForeignFeed: command<{ readonly issuer: string }>(),
  refreshGraph: command<null>(),
  refreshDashboard: command<null>(),
  awaitPublications: query<null>(),
  runTrustCycle: internalCommand<null>(),
  readCounts: internalQuery<null>(),

  readPartners: internalQuery<null>(),
  importFetchedFeed: internalCommand<Prepared['importFeed'] & Fetched>(),
  followFetchedKeys: internalCommand<Prepared['followTreaty'] & Fetched>(),

  recordHistory: internalCommand<HistoryPart>(),

  readEvents: internalQuery<ReadEvents>(),
  openWebhooks: internalCommand<OpenWebhooks>(),
  saveWebhooks: internalCommand<WebhookCursors>(),
} as const;

export type CallName = keyof typeof CALLS;

/** The input of a handler once its caller is admitted. */
export type CallInput<Name extends CallName> =
  (typeof CALLS)[Name] extends Declaration<infer Given> ? Given : never;

export type OperatorCallName = {
  [Name in CallName]: (typeof CALLS)[Name]['access'] extends 'operator' | 'operator-privileged'
    ? Name
    : never;
}[CallName];

export type NodeCallName = {
  [Name in CallName]: (typeof CALLS)[Name]['access'] extends 'node' ? Name : never;
}[CallName];

/** The input from an operator; a malformed body is refused only after the caller is admitted. */
export interface OperatorCall<Given> {
  /** `admitted` for a further page of a list whose reader was admitted with the first. */
  readonly operator: OperatorClaim | 'admitted';
  readonly input: Input<Given>;
}

export type CallOf<Name extends CallName> = Name extends OperatorCallName
  ? OperatorCall<CallInput<Name>>
  : CallInput<Name>;

/** Makes one call; the answer is a promise if something must be stored first. */
export type Call = <Name extends CallName>(
  name: Name,
  call: CallOf<Name>,
) => Answer | Promise<Answer>;

/** Nothing was done. */
export const UNAVAILABLE: Answer = { ok: false, refusal: 'authority_unavailable', details: {} };
export const OUTCOME_UNKNOWN: Answer = {
  ok: false,
  refusal: 'outcome_unknown',
  details: { outcome: 'unknown' },
};

/** Whether the call can be made twice without any effect, not even a spent nonce. */
function isRepeatable(name: CallName): boolean {
  const { access } = CALLS[name];
  return access === 'public' || access === 'internal';
}

/**
 * Whether a stranger has chosen what to ask, so that the answer has to be looked for. Calls without input are answered
 * from what is known anyway.
 */
export function isQuestion(name: CallName, given: unknown): boolean {
  return isRepeatable(name) && (typeof given !== 'object' || Object.keys(given ?? {}).length > 0);
}

/**
 * The authority's knowledge is complete only while nobody else can write. A process that was suspended finds out here,
 * before it is notified.
 */
export function whileHeld(call: Call, isHeld: () => boolean): Call {
  return (name, given) => (isHeld() ? call(name, given) : UNAVAILABLE);
}

/**
 * An answer from memory is current if nobody else could write after the call had arrived. It waits until the database
 * confirms that, unless the answer itself was stored there.
 */
export function onceConfirmed(
  call: Call,
  heldSince: (time: number) => Promise<boolean> | null,
  elapsed: () => number,
): Call {
  return (name, given) => {
    const since = elapsed();
    const answer = call(name, given);
    const otherwise = isRepeatable(name) ? UNAVAILABLE : OUTCOME_UNKNOWN;
    const confirmed = (made: Answer) =>
      heldSince(since)?.then((isHeld) => (isHeld ? made : otherwise)) ?? made;
    return answer instanceof Promise ? answer.then(confirmed) : confirmed(answer);
  };
}

/** The tier that an operator call requires. */
export function requiredTier(access: 'operator' | 'operator-privileged'): Tier {
  return access === 'operator' ? 'standard' : 'privileged';
}

/**
 * The answer of the authority. The value is JSON text, because text is the cheapest thing to send between threads, and
 * serialization stays in one place.
 */
export type Answer = (
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly refusal: RefusalName; readonly details: JsonObject }
) & {
  /** Set if this is the answer that the same request got when it first arrived [core-2-5]. */
  readonly isRepeated?: true;
};
