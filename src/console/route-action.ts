/** Actions that are one operation of the API: tier, checks, request and command line follow from its declaration. */
import type { JsonObject, JsonValue } from '../base/json/value.ts';
import { REFUSALS } from '../base/refusal.ts';
import type { Operation, SentOf } from '../protocol/api/define.ts';
import type { AuditEvent } from '../protocol/rows/audit-event.ts';
import { type Action, type Field, FormProblem, type Plan } from './action.ts';
import type { Context } from './context.ts';
import { linesIn, pastedObject, textIn, wholeIn } from './fields.ts';

export interface MemberField extends Omit<Field, 'isRequired'> {
  /** The member of path or body; by default the name of the field. */
  readonly member?: string;
  /** The flag of the command line, which repeats it for a list; without it, the value is an argument. */
  readonly flag?: string;
}

/** Why a record that everybody can read is revoked. */
export const PUBLIC_REASON: MemberField = {
  name: 'reason',
  flag: '--reason',
  label: 'Reason',
  kind: 'text',
  hint: 'Everybody can read it.',
};

/** What the declaration of an operation does not say of a change. */
interface Terms<Sent>
  extends Pick<Action, 'name' | 'title' | 'label' | 'isDestructive'>,
    Pick<Plan, 'back'> {
  readonly fields: readonly MemberField[];
  /** Members that the form does not ask for. */
  readonly fixed?: JsonObject;
  readonly audited: readonly AuditEvent[];
  /** The arguments of `mesh-na`; `{name}` is the field of this name, which may be empty. */
  readonly command: string;
  /** Why a form without what is required is refused. */
  readonly missing?: string;
  explain(
    sent: Sent,
    context: Context,
  ): Promise<Pick<Plan, 'sentence' | 'effects'>> | Pick<Plan, 'sentence' | 'effects'>;
}

export function routeAction<Declared extends Operation>(
  operation: Declared,
  {
    fields,
    fixed = {},
    audited,
    command,
    missing,
    explain,
    back,
    ...terms
  }: Terms<SentOf<Declared>>,
): Action {
  const { path, body, access } = operation;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const needed = new Set([...inPath, ...(body?.required ?? [])]);
  const shown = fields.map((field) => ({ ...field, isRequired: needed.has(memberOf(field)) }));
  return {
    ...terms,
    tier: access === 'operator-privileged' ? 'privileged' : 'standard',
    fields: shown,
    async plan(context, form) {
      const values = shown.map((field) => [field, valueIn(form, field)] as const);
      for (const [{ label, isRequired }, value] of values) {
        if (isRequired && value === null) throw new FormProblem(missing ?? `${label} is missing.`);
      }
      const sent: Readonly<Record<string, JsonValue>> = {
        ...Object.fromEntries(
          values.flatMap(([field, value]) => (value === null ? [] : [[memberOf(field), value]])),
        ),
        ...fixed,
      };
      const members = Object.entries(sent);
      const request = {
        path: inPath.reduce(
          (filled, name) => filled.replace(`{${name}}`, encodeURIComponent(String(sent[name]))),
          path,
        ),
        body: Object.fromEntries(members.filter(([name]) => !inPath.includes(name))),
      };
      demandFitting(operation, request.body, context);
      const words = new Map(values.map(([field, value]) => [field.name, wordsOf(field, value)]));
      return {
        ...(await explain(sent as SentOf<Declared>, context)),
        requests: [request],
        typedNumber: null,
        command: command
          .split(' ')
          .flatMap((word) => words.get(/^\{(\w+)\}$/.exec(word)?.[1] ?? '') ?? word),
        audited,
        back,
      };
    },
  };
}

function memberOf({ member, name }: MemberField): string {
  return member ?? name;
}

/** Null if the field is empty. */
function valueIn(form: URLSearchParams, { name, label, kind }: MemberField): JsonValue | null {
  switch (kind) {
    case 'number':
      return wholeIn(form, name, label);
    case 'lines': {
      const lines = linesIn(form, name);
      return lines.length === 0 ? null : lines;
    }
    case 'pasted':
      return pastedObject(form, name, label.charAt(0).toLowerCase() + label.slice(1));
    default: {
      const text = textIn(form, name);
      return text === '' ? null : text;
    }
  }
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

function wordsOf({ flag }: MemberField, value: JsonValue | null): string[] {
  const values = value === null ? [] : Array.isArray(value) ? value : [value];
  return values.flatMap((each) => [...(flag === undefined ? [] : [flag]), String(each)]);
}
