/**
 * Routes of declared operations. The authority answers commands, queries and lists, by the name of the operation; the
 * edge answers the others, and may work something out before the call or complete its answer.
 */
import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { InputOf, ListForm, Operation } from '../../protocol/api/define.ts';
import type { ReadContext } from '../../protocol/api/members.ts';
import { type Input, mapped, refused } from '../../protocol/api/read.ts';
import type { Api, OperationName } from '../../protocol/api/table.ts';
import type {
  Judged,
  RevocationKnowledge,
  Verification,
  Verifier,
} from '../../protocol/api/verification.ts';
import type { Answer, CallName, Prepared } from '../../protocol/contract/calls.ts';
import type { NodeClaim, OperatorClaim } from '../../protocol/contract/claims.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { isOperatorRoute, waitsForSlice } from '../../protocol/route-description.ts';
import { type Edge, withAnswer } from '../edge.ts';
import type { Line } from '../limits/request-queue.ts';
import { answerReply, jsonReply, type Reply, refusalReply } from '../reply.ts';
import { withProof } from '../request/limited.ts';
import { type NodeProofRule, operatorOf, type Route, type RouteRequest } from '../request/route.ts';
import { listReply } from './listing.ts';

/** Answers an operation in place of the authority. */
type Answering<Name extends OperationName> = (
  input: InputOf<Api[Name]>,
  request: RouteRequest,
  edge: Edge,
) => Reply | Promise<Reply>;

/** Works out of what an operator has sent what the authority decides by. */
type Preparation<Name extends keyof Prepared> = (
  sent: InputOf<Api[Name]>,
  request: RouteRequest,
  edge: Edge,
) => Promise<Input<Prepared[Name]>>;

/** Makes the reply of what the authority has answered. */
type Completion<Name extends OperationName> = (
  answer: Answer,
  input: InputOf<Api[Name]>,
  request: RouteRequest,
  edge: Edge,
) => Reply | Promise<Reply>;

/** What the edge does for an operation. */
export type EdgePart<Name extends OperationName = never> =
  | {
      readonly answer: Answering<Name>;
      /** Of what every instance answers: whether this one can. Otherwise the active one answers. */
      knows?(params: RouteRequest['params']): boolean;
    }
  | { readonly complete: Completion<Name> }
  | { readonly prepare: Name extends keyof Prepared ? Preparation<Name> : never };

export type EdgeParts = { readonly [Name in OperationName]?: EdgePart<Name> };

type Handle = Route['handle'];

export function routeOf(name: OperationName, operation: Operation, part: EdgePart | null): Route {
  const { read: _, list: __, kind, proof, ...described } = operation;
  return {
    ...described,
    name,
    call: kind === 'document' || kind === 'verification' ? null : (name as CallName),
    line: lineOf(operation),
    ...(proof !== undefined && { proof: proofRule(operation, proof) }),
    ...(part !== null && 'knows' in part && { knows: part.knows }),
    handle: handlerOf(name, operation, part),
  };
}

function lineOf(operation: Operation): Line | null {
  if (operation.isProbe === true) return null;
  if (!waitsForSlice(operation)) return 'document';
  if (operation.access === 'node') return 'node';
  return isOperatorRoute(operation) ? 'operator' : 'public';
}

/** The key of a node is in the path, or in the body. */
function proofRule({ path }: Operation, form: NodeProofRule['form']): NodeProofRule {
  if (path.endsWith('/{node_public_key}')) {
    return { form, keyOf: ({ params }) => params.node_public_key ?? '' };
  }
  return {
    form,
    keyOf({ body: { node_public_key: key } }) {
      return typeof key === 'string' ? key : null;
    },
  };
}

function handlerOf(name: OperationName, operation: Operation, part: EdgePart | null): Handle {
  if (isVerification(operation)) return verifying(operation);
  if (part !== null && 'answer' in part) return answering(operation, part.answer);
  const complete = part !== null && 'complete' in part ? part.complete : answerReply;
  if (operation.access === 'node') return askingForNode(name, operation, complete);
  if (operation.list !== undefined) return listing(name, operation, operation.list);
  const prepare: Preparation<never> | null =
    part !== null && 'prepare' in part ? part.prepare : null;
  return asking(name, operation, prepare, complete);
}

function answering(operation: Operation, answer: Answering<never>): Handle {
  return (request, edge) => {
    const input = inputOf(operation, request, edge);
    if (!input.ok) return refusalReply(input.refusal, input.details);
    return answer(input.value as never, request, edge);
  };
}

function askingForNode(
  name: OperationName,
  operation: Operation,
  complete: Completion<never>,
): Handle {
  return (request, edge) => {
    const input = inputOf(operation, request, edge);
    if (!input.ok) return refusalReply(input.refusal, input.details);
    const given = input.value as { node?: NodeClaim };
    return withProof(request, edge, (node) => {
      given.node = node;
      return withAnswer(edge.call(name as CallName, given as never), (answer) =>
        complete(answer, given as never, request, edge),
      );
    });
  };
}

function asking(
  name: OperationName,
  operation: Operation,
  prepare: Preparation<never> | null,
  complete: Completion<never>,
): Handle {
  return async (request, edge) => {
    const operator = isOperatorRoute(operation) ? operatorOf(request) : null;
    const input =
      prepare === null
        ? inputOf(operation, request, edge)
        : await preparedInput(operation, prepare, request, edge);
    const answer = await ask(name, operator, input, edge);
    if (!answer.ok || !input.ok) return answerReply(answer);
    return complete(answer, input.value as never, request, edge);
  };
}

function listing(name: OperationName, operation: Operation, list: ListForm): Handle {
  return (request, edge) => {
    const operator = isOperatorRoute(operation) ? operatorOf(request) : null;
    const input = inputOf(operation, request, edge);
    let caller: OperatorClaim | 'admitted' | null = operator;
    return listReply(
      {
        ...list,
        page(page) {
          const asked = page.ok
            ? mapped(input, (filter) => Object.assign({}, filter, page.value))
            : page;
          const answer = ask(name, caller, asked, edge);
          if (operator !== null) caller = 'admitted';
          return answer;
        },
      },
      request,
    );
  };
}

/** The last event that a client has, as its browser says, takes the place of `after` [events-1]. */
function inputOf({ read }: Operation, request: RouteRequest, edge: Edge): Input<unknown> {
  const { lastEventId, query } = request;
  const context = contextOf(request, edge);
  if (lastEventId === '') return read(request, context);
  return read({ ...request, query: { ...query, after: [lastEventId] } }, context);
}

async function preparedInput(
  operation: Operation,
  prepare: Preparation<never>,
  request: RouteRequest,
  edge: Edge,
): Promise<Input<unknown>> {
  // Nothing is worked out for a sender who will not be admitted.
  if (operatorOf(request).verdict !== 'valid') return refused('bad_request');
  const sent = inputOf(operation, request, edge);
  return sent.ok ? prepare(sent.value as never, request, edge) : sent;
}

function ask(
  name: OperationName,
  operator: OperatorClaim | 'admitted' | null,
  input: Input<unknown>,
  { call }: Edge,
): Answer | Promise<Answer> {
  if (operator !== null) return call(name as CallName, { operator, input } as never);
  return input.ok ? call(name as CallName, input.value as never) : input;
}

export function contextOf({ now }: RouteRequest, { runtime, settings }: Edge): ReadContext {
  const { isAllowedRole, maxFeedEntries } = settings;
  return { now, uuid: runtime.uuid, isAllowedRole, maxFeedEntries };
}

/**
 * Routes of public, stateless verifications. Nothing is written: since anyone can cause a verification, it is logged
 * and counted, never audited. The authority is only asked which items are revoked here, and for the recognition policy.
 */

/** Longer texts of callers are truncated in the log. */
const MAX_LOGGED_TEXT = 256;

function isVerification(operation: Operation): operation is Verification {
  return operation.kind === 'verification';
}

function verifying({ event, judge }: Verification): Route['handle'] {
  // A reply without a promise is sent in the same turn, which is a third faster.
  return ({ body, now }, edge) => {
    const judged = judge(body, verifierOf(edge, now));
    return judged instanceof Promise
      ? judged.then((later) => verdictReply(later, event, edge))
      : verdictReply(judged, event, edge);
  };
}

function verdictReply({ verdict, logged }: Judged<unknown>, event: string, edge: Edge): Reply {
  edge.metrics.verified(event, logged.accepted === true || logged.valid === true);
  edge.logger.write('INFO', 'audit', `${event} ${jsonText(shortened(logged))}`);
  return jsonReply(200, jsonText(verdict as JsonObject));
}

function verifierOf(edge: Edge, now: number): Verifier {
  return {
    now,
    uuid: edge.runtime.uuid,
    verify: verifySignature,
    sha256: SHA256,
    isBounded: true,
    ownKeys: () => edge.settings.authorityKeys.trusted,
    ownName: edge.settings.genesis.network_name,
    async ownPolicy() {
      const answer = await edge.call('readRecognitionPolicy', {});
      if (!answer.ok) throw new Refusal('missing_recognition_policy');
      return parseJson(answer.json);
    },
    async askRevocations(question) {
      const answer = await edge.call('askRevocations', question);
      if (!answer.ok) throw new Refusal(answer.refusal, answer.details);
      return JSON.parse(answer.json) as RevocationKnowledge;
    },
  };
}

function shortened(verdict: JsonObject): JsonObject {
  const values = Object.values(verdict);
  if (!values.some((value) => typeof value === 'string' && value.length > MAX_LOGGED_TEXT)) {
    return verdict;
  }
  return Object.fromEntries(
    Object.entries(verdict).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.slice(0, MAX_LOGGED_TEXT) : value,
    ]),
  );
}
