/**
 * How a route is declared: one value, from which its routing, access and limits, the reading of a request, the input
 * of its handler, the method of the client, the OpenAPI document and the references follow. The name under which a
 * declaration is exported is the name of the operation everywhere.
 */
import Type, {
  type Static,
  type TArray,
  type TNull,
  type TObject,
  type TOptional,
  type TSchema,
  type TUnion,
} from 'typebox';
import type { JsonObject } from '../../base/json/value.ts';
import type { RefusalName } from '../refusals.ts';
import type { Access, RateBucket, RouteDescription } from '../route-description.ts';
import {
  type Body,
  type Member,
  NodeProofMembers,
  type ReadBody,
  type ReadContext,
} from './members.ts';
import type { Parameter, Query } from './parameters.ts';
import { bodyReader, type Input, ownReader, queryReader, type Unread } from './read.ts';

/**
 * The authority answers commands, which change state, queries, which read committed state, and lists, which are queries
 * that are read a page at a time. The edge answers the others: `document` from what is published or known to it, and
 * `verification` from the request alone.
 */
export type OperationKind = 'command' | 'query' | 'list' | 'document' | 'verification';

export interface Operation<
  Given = unknown,
  Sent = unknown,
  Answer = unknown,
  Allowed extends Access = Access,
  Kind extends OperationKind = OperationKind,
> extends RouteDescription {
  readonly access: Allowed;
  readonly kind: Kind;
  /** Of a list: the member of the answer that has the rows, and whether their number is answered, too. */
  readonly list?: ListForm;
  /** Where the key is whose possession a request of a node proves, and whether the body may prove it. */
  readonly proof?: 'body or header' | 'header if sent';
  /** The input of the handler, or the refusal of what does not fit. */
  read(request: Unread, context: ReadContext): Input<Given>;
  /** Never set; it only carries types. */
  readonly types?: { readonly sent: Sent; readonly answer: Answer };
}

export interface ListForm {
  readonly member: string;
  readonly isCounted: boolean;
}

/** What the handler of an operation gets: checked, defaults filled in, the names of the wire. */
export type InputOf<Declared> = Declared extends Operation<infer Given> ? Given : never;
/** What a client sends: the members of path, query and body in one object. */
export type SentOf<Declared> = Declared extends { readonly types?: { readonly sent: infer Sent } }
  ? Sent
  : never;
export type AnswerOf<Declared> = Declared extends {
  readonly types?: { readonly answer: infer Answer };
}
  ? Answer
  : never;

type PathNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathNames<Rest>
  : never;
type PathMembers<Path extends string> = { readonly [Name in PathNames<Path>]: string };

type BodyInput<Given extends Body | ReadBody> =
  Given extends ReadBody<TObject, infer Value>
    ? Value
    : Given extends Body
      ? MembersInput<Given>
      : never;
export type BodySent<Given extends Body | ReadBody> =
  Given extends ReadBody<infer Schema>
    ? Schema extends TObject<infer Properties>
      ? {
          readonly [Name in keyof Static<Schema>]:
            | SentBy<Properties[Name]>
            | (Properties[Name] extends TOptional<TSchema> ? undefined : never);
        }
      : never
    : Given extends Body
      ? MembersSent<Given>
      : never;

/** Records are sent as they were received, whatever else they have. */
type SentBy<Schema> =
  Schema extends TObject<infer _>
    ? JsonObject
    : Schema extends TArray<TObject>
      ? readonly JsonObject[]
      : Schema extends TUnion<[infer Given extends TSchema, TNull]>
        ? SentBy<Given> | null
        : Schema extends TSchema
          ? Sent<Static<Schema>>
          : never;

type MembersInput<Members extends Body> = {
  readonly [Name in keyof Members]: Members[Name] extends Member<infer Value> ? Value : never;
};
type MembersSent<Members extends Body> = {
  readonly [Name in keyof Members as Members[Name]['isRequired'] extends true ? Name : never]: Sent<
    MembersInput<Members>[Name]
  >;
} & {
  readonly [Name in keyof Members as Members[Name]['isRequired'] extends true ? never : Name]?:
    | Sent<MembersInput<Members>[Name]>
    | null
    | undefined;
};

type QueryInput<Parameters extends Query> = {
  readonly [Name in keyof Parameters]: ReturnType<Parameters[Name]['read']> extends infer Value
    ? Exclude<Value, undefined>
    : never;
};
type QuerySent<Parameters extends Query> = {
  readonly [Name in keyof Parameters]?: Parameters[Name]['sent'] | undefined;
};

/** A value as clients may give it: no list of theirs is changed. */
type Sent<Value> = Value extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : Value extends object
    ? { readonly [Name in keyof Value]: Sent<Value[Name]> }
    : Value;

/** The form of an answer: JSON, or the media type of anything else. */
type AnswerForm = RouteDescription['answer'];
type AnswerIn<Form extends AnswerForm> = Form extends TSchema ? Static<Form> : never;

/** Everything of a declaration that its method and path do not say. */
interface Terms<Form extends AnswerForm>
  extends Omit<
    RouteDescription,
    | 'access'
    | 'answer'
    | 'body'
    | 'keepsAnswer'
    | 'limit'
    | 'method'
    | 'path'
    | 'query'
    | 'refusals'
  > {
  readonly answer: Form;
  readonly limit?: RateBucket;
  /** Refusals besides those of the members. */
  readonly refusals?: readonly RefusalName[];
}

interface CommandTerms<Members extends Body | ReadBody, Form extends AnswerForm>
  extends Terms<Form> {
  readonly body?: Members;
}

interface QueryTerms<Parameters extends Query, Form extends AnswerForm, Given> extends Terms<Form> {
  readonly query?: Parameters;
  /** What the handler gets instead of the parameters, where they depend on each other. Throws what is refused. */
  readonly derive?: (parameters: QueryInput<Parameters>, context: ReadContext) => Given;
}

type Command<
  Path extends string,
  Members extends Body | ReadBody,
  Form extends AnswerForm,
  Allowed extends Access,
  Kind extends OperationKind,
> = Operation<
  PathMembers<Path> & BodyInput<Members>,
  PathMembers<Path> & BodySent<Members>,
  AnswerIn<Form>,
  Allowed,
  Kind
>;

type Read<
  Path extends string,
  Parameters extends Query,
  Form extends AnswerForm,
  Given,
  Allowed extends Access,
  Kind extends OperationKind,
> = Operation<
  PathMembers<Path> & Given,
  PathMembers<Path> & QuerySent<Parameters> & (Kind extends 'list' ? SentPage : unknown),
  AnswerIn<Form>,
  Allowed,
  Kind
>;

/** Without a limit, the whole list is answered. */
export interface SentPage {
  readonly limit?: number | undefined;
  /** The `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
}

// biome-ignore lint/complexity/noBannedTypes: without members
type None = {};

/** What all operations of a factory have in common. */
type Shared<Allowed extends Access, Kind extends OperationKind> = Partial<RouteDescription> &
  Pick<Operation, 'proof'> & { readonly access: Allowed; readonly kind: Kind };

/** Declares what is sent with a body. */
function commands<Allowed extends Access, Kind extends 'command' | 'document'>(
  shared: Shared<Allowed, Kind>,
  furtherMembers: TObject['properties'] = {},
) {
  return <
    Method extends 'POST' | 'DELETE',
    Path extends string,
    Form extends AnswerForm,
    Members extends Body | ReadBody = None,
  >(
    route: `${Method} ${Path}`,
    {
      body,
      refusals = [],
      ...terms
    }: CommandTerms<Members, Form> & Pick<Partial<Operation>, 'keepsAnswer' | 'proof'>,
  ): Command<Path, Members, Form, Allowed, Kind> => {
    const own = bodyOf<PathMembers<Path> & BodyInput<Members>>(body ?? {}, furtherMembers);
    const operation = {
      limit: 'none',
      keepsAnswer: false,
      ...shared,
      ...terms,
      ...routeIn(route),
      ...(body !== undefined && { body: own.schema }),
    } as const;
    const afterwards = operation.keepsAnswer ? (['already_done'] as const) : [];
    return {
      ...operation,
      refusals: [...new Set([...own.refusals, ...refusals, ...afterwards])],
      read: own.read,
    };
  };
}

/** Declares what is read. */
function queries<Allowed extends Access, Kind extends 'query' | 'list' | 'document'>(
  shared: Shared<Allowed, Kind>,
) {
  return <
    Path extends string,
    Form extends AnswerForm,
    Parameters extends Query = None,
    Given extends object = QueryInput<Parameters>,
  >(
    route: `GET ${Path}`,
    terms: QueryTerms<Parameters, Form, Given> &
      (Kind extends 'list' ? { readonly list: ListForm } : unknown),
  ): Read<Path, Parameters, Form, Given, Allowed, Kind> => {
    const { query, derive, refusals = [], ...others } = terms;
    const parameters: Query = query ?? {};
    const isList = shared.kind === 'list';
    return {
      limit: 'none',
      keepsAnswer: false,
      ...shared,
      ...others,
      ...routeIn(route),
      ...((query !== undefined || isList) && {
        query: schemaOf(parameters, isList ? PAGE_QUERY : {}),
      }),
      refusals: [
        ...new Set([
          ...(isList ? PAGE_REFUSALS : []),
          ...Object.values(parameters).flatMap(({ refusal }) => refusal ?? []),
          ...refusals,
        ]),
      ],
      read: queryReader(parameters, derive),
    };
  };
}

const OPERATORS = { kind: 'command', limit: 'ADMIN', keepsAnswer: true } as const;

/** A command of an operator of standard tier. */
export const operatorCommand = commands({ ...OPERATORS, access: 'operator' });
/** A command of an operator of privileged tier. */
export const privilegedCommand = commands({ ...OPERATORS, access: 'operator-privileged' });
/** A command of a node, whose body or header proves possession of its key. */
export const nodeCommand = commands(
  { kind: 'command', access: 'node', proof: 'body or header' },
  NodeProofMembers,
);
/** A query of an operator. */
export const operatorQuery = queries({ kind: 'query', access: 'operator' });
/** A list for operators. */
export const operatorList = queries({ kind: 'list', access: 'operator' });
/** A query that anyone may make. */
export const publicQuery = queries({ kind: 'query', access: 'public' });
/** A list that anyone may read. */
export const publicList = queries({ kind: 'list', access: 'public' });
/** A query that anyone may make, and that answers operators more. */
export const openQuery = queries({ kind: 'query', access: 'public-or-operator' });
/** What anyone may read as often as they like, with a validator for conditional requests. */
export const publicDocument = queries({ kind: 'document', access: 'public', hasEtag: true });
/** What the edge answers anyone from what it knows. */
export const publicAnswer = queries({ kind: 'document', access: 'public' });
/** What the edge answers those whom the deployment lets through. */
export const internalAnswer = queries({ kind: 'document', access: 'internal' });
/** What anyone may have computed from a body, without any state. */
export const publicComputation = commands({ kind: 'document', access: 'public' });

const PAGE = { contentType: 'text/html; charset=utf-8' } as const;

/** A page for anyone. Its parameters may be any text: what does not fit counts as absent. */
export function publicPage<Path extends string, Parameters extends Query = None>(
  route: `GET ${Path}`,
  terms: Omit<QueryTerms<Parameters, typeof PAGE, QueryInput<Parameters>>, 'answer' | 'derive'>,
) {
  return publicDocument<Path, typeof PAGE, Parameters>(route, { ...terms, answer: PAGE });
}

function bodyOf<Given>(
  body: Body | ReadBody,
  furtherMembers: TObject['properties'],
): {
  readonly schema: TObject;
  readonly refusals: readonly RefusalName[];
  readonly read: Operation<Given>['read'];
} {
  if (isReadBody(body)) return { ...body, read: ownReader(body.read) };
  const schema = schemaOf(body, furtherMembers);
  return { schema, refusals: refusalsOf(body), read: bodyReader(schema, body) };
}

function isReadBody(body: Body | ReadBody): body is ReadBody {
  return typeof body.read === 'function';
}

function routeIn<Method extends RouteDescription['method']>(route: `${Method} ${string}`) {
  const [method, path] = route.split(' ') as [Method, string];
  return { method, path };
}

/** The schema of what may be sent, with further properties after it. */
function schemaOf(
  declared: { readonly [name: string]: Pick<Parameter, 'schema'> & { isRequired?: boolean } },
  further: TObject['properties'],
): TObject {
  const entries = Object.entries(declared).map(
    ([name, { schema, isRequired }]) =>
      [name, isRequired ? schema : Type.Optional(schema)] as const,
  );
  return Type.Object({ ...Object.fromEntries(entries), ...further });
}

/** The most rows of a requested page. */
export const MOST_ROWS = 1000;

/** The parameters of every list, which the edge reads. */
const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MOST_ROWS,
      description: 'Rows at most; without it the whole list is sent',
    }),
  ),
  cursor: Type.Optional(Type.String({ description: 'The next_cursor of the page before' })),
};

const PAGE_REFUSALS = ['invalid_limit', 'invalid_cursor'] as const;

function refusalsOf(members: Body): RefusalName[] {
  return Object.values(members).flatMap(({ refusal, checks: { before = [], after = [] } }) => [
    ...before.map((check) => check.refusal),
    ...(refusal === null ? [] : [refusal]),
    ...after.map((check) => check.refusal),
  ]);
}
