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
import type { RefusalName } from '../../base/refusal.ts';
import type { Access, RateBucket, RouteDescription } from '../route-description.ts';
import type { Input } from './input.ts';
import type { Body, Member, ReadBody, ReadContext } from './members.ts';
import type { Query } from './parameters.ts';
import { bodyReader, ownReader, queryReader, type Unread } from './read.ts';

/** Commands change state; queries read committed state; lists are queries that are read a page at a time. */
export type OperationKind = 'command' | 'query' | 'list';

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
  /** The input of the handler, or the refusal of what does not fit. */
  read(request: Unread, context: ReadContext): Input<Given>;
  /** Never set; it only carries types. */
  readonly types?: { readonly sent: Sent; readonly answer: Answer };
}

interface ListForm {
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

/** Everything of a declaration that its method and path do not say. */
interface Terms<Answer extends TSchema>
  extends Pick<
    RouteDescription,
    'created' | 'description' | 'example' | 'exampleNeeds' | 'maxBodyBytes' | 'pathEnd' | 'summary'
  > {
  readonly answer: Answer;
  /** Refusals besides those of the members. */
  readonly refusals?: readonly RefusalName[];
}

interface CommandTerms<Members extends Body | ReadBody, Answer extends TSchema>
  extends Terms<Answer> {
  readonly body?: Members;
}

interface QueryTerms<Parameters extends Query, Answer extends TSchema> extends Terms<Answer> {
  readonly query?: Parameters;
  readonly limit?: RateBucket;
}

type Command<
  Path extends string,
  Members extends Body | ReadBody,
  Answer extends TSchema,
  Allowed extends Access,
> = Operation<
  PathMembers<Path> & BodyInput<Members>,
  PathMembers<Path> & BodySent<Members>,
  Static<Answer>,
  Allowed,
  'command'
>;

type Read<
  Path extends string,
  Parameters extends Query,
  Answer extends TSchema,
  Allowed extends Access,
  Kind extends OperationKind,
> = Operation<
  PathMembers<Path> & QueryInput<Parameters>,
  PathMembers<Path> & QuerySent<Parameters> & (Kind extends 'list' ? SentPage : unknown),
  Static<Answer>,
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

/** Declares commands of one access class. */
function commands<Allowed extends Access>(access: Allowed) {
  return <Path extends string, Answer extends TSchema, Members extends Body | ReadBody = None>(
    route: `POST ${Path}`,
    { body, refusals = [], ...terms }: CommandTerms<Members, Answer>,
  ): Command<Path, Members, Answer, Allowed> => {
    const own = bodyOf<PathMembers<Path> & BodyInput<Members>>(body ?? {});
    return {
      ...terms,
      method: 'POST',
      path: pathIn(route),
      access,
      kind: 'command',
      limit: 'ADMIN',
      keepsAnswer: true,
      ...(body !== undefined && { body: own.schema }),
      refusals: [...new Set([...own.refusals, ...refusals])],
      read: own.read,
    };
  };
}

/** Declares queries or lists of one access class. */
function queries<Allowed extends Access, Kind extends 'query' | 'list'>(
  access: Allowed,
  kind: Kind,
) {
  return <Path extends string, Answer extends TSchema, Parameters extends Query = None>(
    route: `GET ${Path}`,
    terms: QueryTerms<Parameters, Answer> &
      (Kind extends 'list' ? { readonly list: ListForm } : unknown),
  ): Read<Path, Parameters, Answer, Allowed, Kind> => {
    const { query, refusals = [], limit, ...others }: QueryTerms<Parameters, Answer> = terms;
    const parameters: Query = query ?? {};
    const isList = kind === 'list';
    return {
      ...others,
      method: 'GET',
      path: pathIn(route),
      access,
      kind,
      limit: limit ?? 'none',
      keepsAnswer: false,
      ...((query !== undefined || isList) && { query: querySchema(parameters, isList) }),
      refusals: [
        ...new Set([
          ...(isList ? PAGE_REFUSALS : []),
          ...Object.values(parameters).flatMap(({ refusal }) => refusal ?? []),
          ...refusals,
        ]),
      ],
      read: queryReader(parameters),
    };
  };
}

/** A command of an operator of standard tier. */
export const operatorCommand = commands('operator');
/** A command of an operator of privileged tier. */
export const privilegedCommand = commands('operator-privileged');
/** A query of an operator. */
export const operatorQuery = queries('operator', 'query');
/** A list for operators. */
export const operatorList = queries('operator', 'list');
/** A query that anyone may make. */
export const publicQuery = queries('public', 'query');
/** A list that anyone may read. */
export const publicList = queries('public', 'list');

function bodyOf<Given>(body: Body | ReadBody): {
  readonly schema: TObject;
  readonly refusals: readonly RefusalName[];
  readonly read: Operation<Given>['read'];
} {
  if (isReadBody(body)) return { ...body, read: ownReader(body.read) };
  const schema = bodySchema(body);
  return { schema, refusals: refusalsOf(body), read: bodyReader(schema, body) };
}

function isReadBody(body: Body | ReadBody): body is ReadBody {
  return typeof body.read === 'function';
}

function pathIn(route: string): string {
  return route.slice(route.indexOf(' ') + 1);
}

function bodySchema(members: Body): TObject {
  const entries = Object.entries(members).map(
    ([name, { schema, isRequired }]) =>
      [name, isRequired ? schema : Type.Optional(schema)] as const,
  );
  return Type.Object(Object.fromEntries(entries));
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

function querySchema(parameters: Query, isList: boolean): TObject {
  const own = Object.entries(parameters).map(
    ([name, { schema }]) => [name, Type.Optional(schema)] as const,
  );
  return Type.Object({ ...Object.fromEntries(own), ...(isList && PAGE_QUERY) });
}

function refusalsOf(members: Body): RefusalName[] {
  return Object.values(members).flatMap(({ refusal, checks: { before = [], after = [] } }) => [
    ...before.map((check) => check.refusal),
    ...(refusal === null ? [] : [refusal]),
    ...after.map((check) => check.refusal),
  ]);
}
