/** Actions that are an operation of the API: fields, checks, requests and command line follow from its declaration. */
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json/value.ts';
import type { Operation, SentOf } from '../protocol/api/define.ts';
import { REFUSALS } from '../protocol/refusals.ts';
import type { Context } from './context.ts';
import { type AskedField, fieldFor, type Shape, textIn, valueIn } from './forms.ts';
import { type Action, type Field, FormProblem, type Plan } from './page.ts';

/** Members of path and body by their names in the API; a dot leads into an object. */
type MemberOf<Sent> = (keyof Sent & string) | `${keyof Sent & string}.${string}`;

/** What the declaration of an operation does not say of a change. */
interface Terms<Sent>
  extends Pick<Action, 'name' | 'title' | 'label' | 'isDestructive' | 'heading'>,
    Pick<Plan, 'audited' | 'isSecret'> {
  readonly fields: { readonly [Name in MemberOf<Sent>]?: AskedField };
  /** Fields that are no member. */
  readonly further?: { readonly [name: string]: AskedField };
  /**
   * The arguments of `mesh-na`; `{member}` is its value, which a flag before it is repeated for, or left out without.
   */
  readonly command: string | ((sent: Sent) => string);
  /** Why a form without what is required is refused. */
  readonly missing?: string;
  explain(sent: Sent, context: Context, form: URLSearchParams): Explained | Promise<Explained>;
}

/** `bodies` are those of the requests, unless the form is the body of the only one; `subjects` are in their order. */
type Explained = Pick<Plan, 'sentence' | 'effects'> &
  Partial<
    Pick<Plan, 'answer' | 'back' | 'command' | 'isDone' | 'isStillMeant' | 'touched' | 'typed'>
  > & {
    readonly bodies?: readonly JsonObject[];
    readonly subjects?: readonly string[];
  };

export function routeAction<Declared extends Operation>(
  operation: Declared,
  terms: Terms<SentOf<Declared>>,
): Action {
  const { name, title, label, isDestructive = false, fields, further = {}, missing } = terms;
  const { audited, command, explain, heading, isSecret = false } = terms;
  const { path, access } = operation;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, member = '']) => member);
  const members = Object.entries<AskedField | undefined>(fields).flatMap(([member, asked]) => {
    if (asked === undefined) return [];
    const shape = shapeOf(operation, member);
    const isNeeded = inPath.includes(member) || operation.body?.required?.includes(member) === true;
    return { asked, shape, field: fieldFor(member, asked, shape, isNeeded) };
  });

  function sentIn(form: URLSearchParams): JsonObject {
    let sent: JsonObject = {};
    for (const { asked, shape, field } of members) {
      const value = valueIn(form, field, asked, shape);
      if (value !== undefined) sent = withMember(sent, field.name, value);
      else if (field.isRequired && textIn(form, field.name) === '') {
        throw new FormProblem(missing ?? `${field.label} is missing.`);
      }
    }
    return sent;
  }

  return {
    name,
    title,
    label,
    isDestructive,
    tier: access === 'operator-privileged' ? 'privileged' : 'standard',
    fields: [
      ...Object.entries(further).map(([own, asked]): Field => fieldFor(own, asked, {}, false)),
      ...members.map(({ field }) => field),
    ],
    ...(heading !== undefined && { heading }),
    async plan(context, form) {
      const sent = sentIn(form);
      const own = Object.entries(sent).filter(([member]) => !inPath.includes(member));
      const explained = await explain(sent as SentOf<Declared>, context, form);
      const { bodies = [Object.fromEntries(own)], subjects = [], ...shown } = explained;
      demandFitting(operation, bodies[0] ?? {}, context);
      const template = typeof command === 'string' ? command : command(sent as SentOf<Declared>);
      const filled = inPath.reduce(
        (begun, member) => begun.replace(`{${member}}`, encodeURIComponent(String(sent[member]))),
        path,
      );
      return {
        typed: null,
        command: wordsOf(template, { ...sent, ...bodies[0] }),
        audited,
        isSecret,
        ...shown,
        requests: bodies.map((body, index) => {
          const subject = subjects[index];
          return { path: filled, body, ...(subject !== undefined && { subject }) };
        }),
      };
    },
  };
}

function shapeOf({ body }: Operation, member: string): Shape {
  const [outer = '', inner] = member.split('.');
  const shape = body?.properties[outer] as Shape | undefined;
  if (inner === undefined) return shape ?? {};
  return (shape?.described ?? shape)?.properties?.[inner] ?? {};
}

function withMember(sent: JsonObject, member: string, value: JsonValue): JsonObject {
  const [outer = '', inner] = member.split('.');
  if (inner === undefined) return { ...sent, [outer]: value };
  const before = sent[outer];
  return { ...sent, [outer]: { ...(isJsonObject(before) && before), [inner]: value } };
}

/** Which roles a network allows, and how large a feed may be, only the authority knows. */
function demandFitting(operation: Operation, body: JsonObject, { now }: Context): void {
  const request = { params: {}, query: {}, body };
  const input = operation.read(request, {
    now: now(),
    uuid: () => '',
    isAllowedRole: () => true,
    maxFeedEntries: Number.POSITIVE_INFINITY,
  });
  if (!input.ok) throw new FormProblem(`${REFUSALS[input.refusal].message}.`);
}

function wordsOf(template: string, sent: JsonObject): string[] {
  const words = template.matchAll(/(?:(--\S+) (?!--))?(\S+)/g);
  return [...words].flatMap(([, flag, word = '']) => {
    const member = /^\{(.+)\}$/.exec(word)?.[1];
    const values = member === undefined ? [word] : textsOf(memberIn(sent, member));
    return values.flatMap((value) => (flag === undefined ? [value] : [flag, value]));
  });
}

function memberIn(sent: JsonObject, member: string): JsonValue | undefined {
  const [outer = '', inner] = member.split('.');
  const value = sent[outer];
  return inner === undefined ? value : isJsonObject(value) ? value[inner] : undefined;
}

function textsOf(value: JsonValue | undefined): string[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value.map(String);
  return isJsonObject(value)
    ? Object.entries(value).map(([key, each]) => `${key}=${String(each)}`)
    : [String(value)];
}
