/** The name, labels and host name of a node, for its operators only [core-4-21]. */
import Type, { type Static, type TSchema } from 'typebox';

/** Control and format characters, line and paragraph separators, surrogates, private use. */
const UNPRINTABLE = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}';
const MAX_NAME_LENGTH = 64;
const MAX_VALUE_LENGTH = 63;
const MAX_LABELS = 16;

const NAME = new RegExp(
  `^[^\\p{Z}${UNPRINTABLE}](?:[^${UNPRINTABLE}]{0,${MAX_NAME_LENGTH - 2}}[^\\p{Z}${UNPRINTABLE}])?$`,
  'u',
);
const LABEL_KEY = /^[a-z0-9._/-]{1,63}$/;
const LABEL_VALUE = new RegExp(`^[^${UNPRINTABLE}]{0,${MAX_VALUE_LENGTH}}$`, 'u');
const HOST_NAME = /^[A-Za-z0-9._-]{1,253}$/;

export function isNodeName(text: string): boolean {
  return NAME.test(text);
}

export function isHostName(text: string): boolean {
  return HOST_NAME.test(text);
}

export function isLabelKey(text: string): boolean {
  return LABEL_KEY.test(text);
}

/** Whether the text is a label as filters take it: a key, or `key=value`. */
export function isLabel(text: string): boolean {
  const [key = '', ...value] = text.split('=');
  return isLabelKey(key) && LABEL_VALUE.test(value.join('='));
}

export const NodeName = Type.Refine(
  Type.String({
    minLength: 1,
    maxLength: MAX_NAME_LENGTH,
    description: 'Printable characters without a space at either end',
  }),
  isNodeName,
);

export const ChangedName = Type.Refine(
  Type.String({
    maxLength: MAX_NAME_LENGTH,
    description: 'The new name: printable characters without a space at either end; empty for none',
  }),
  (text) => text === '' || isNodeName(text),
);

export const HostName = Type.String({
  pattern: HOST_NAME.source,
  description: 'What the machine calls itself; operators see it as reported',
});

const LabelValue = Type.Refine(Type.String({ maxLength: MAX_VALUE_LENGTH }), (text) =>
  LABEL_VALUE.test(text),
);

function labels<Value extends TSchema>(value: Value, description: string) {
  return Type.Record(Type.String({ pattern: LABEL_KEY.source }), value, {
    maxProperties: MAX_LABELS,
    additionalProperties: false,
    description,
  });
}

export const NodeLabels = labels(
  LabelValue,
  'Keys are 1 to 63 of a-z 0-9 . _ / -, values are printable characters',
);

export const LabelChanges = labels(
  Type.Union([LabelValue, Type.Null()]),
  'Labels to set, with bounds as for an invite; null removes a label, and all others are kept',
);

/** The members of a description, each only if it is set, as part of a row. */
export const DescriptionMembers = {
  name: Type.Optional(Type.String()),
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  /** What the node reported when it joined. */
  hostname: Type.Optional(Type.String()),
};

export type NodeLabels = Static<typeof NodeLabels>;
export type LabelChanges = Static<typeof LabelChanges>;

/** Each label as `key=value`, sorted; a key contains no `=`. */
export function labelTexts(labels: NodeLabels): readonly string[] {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort();
}

export function labelsIn(texts: readonly string[]): NodeLabels {
  return Object.fromEntries(
    texts.map((text) => {
      const mark = text.indexOf('=');
      return [text.slice(0, mark), text.slice(mark + 1)];
    }),
  );
}

/**
 * Finds nodes by name, label or host name [core-4-17]. Clients test what they get once more before they change it: an
 * authority may be too old to know a filter.
 */
/** Empty lists do not filter. */
interface DescriptionFilter {
  /** The node has any of these names; `*` in a name or host name stands for any text. */
  readonly name: readonly string[];
  /** The node has all of these labels, each a key, or `key=value`. */
  readonly label: readonly string[];
}

/** Absent and null members are not set. */
export interface Described {
  readonly name?: string | null | undefined;
  /** Each label as `key=value`. */
  readonly labels?: readonly string[] | null | undefined;
  readonly hostname?: string | null | undefined;
}

/** Tests descriptions; null if all of them pass. */
export function descriptionTest({
  name: names,
  label: labels,
  hostname = null,
}: DescriptionFilter & { readonly hostname?: string | null }):
  | ((described: Described | undefined) => boolean)
  | null {
  if (names.length === 0 && labels.length === 0 && hostname === null) return null;
  const nameTests = names.map(textTest);
  const isHostname = hostname === null ? null : textTest(hostname);
  return ({ name, hostname: reported, labels: own } = {}) =>
    (names.length === 0 || (name != null && nameTests.some((isName) => isName(name)))) &&
    (isHostname === null || (reported != null && isHostname(reported))) &&
    labels.every((label) => hasLabel(own ?? [], label));
}

/** The labels in a text that has several, separated by commas or blanks: `env=prod,rack=r3`. */
export function labelsOf(text: string): readonly string[] {
  // A value can have commas and blanks, but what looks like the next label is one.
  return text.split(/[,\s]+(?=[a-z0-9._/-]{1,63}=)/);
}

function hasLabel(labels: readonly string[], label: string): boolean {
  return label.includes('=')
    ? labels.includes(label)
    : labels.some((each) => each.startsWith(`${label}=`));
}

/** Tests texts by a pattern in which `*` stands for any text; case does not matter. */
function textTest(pattern: string): (text: string) => boolean {
  const [first = '', ...others] = pattern.toLowerCase().split('*');
  const last = others.pop();
  return (text) => {
    const lower = text.toLowerCase();
    if (last === undefined) return lower === first;
    if (!lower.startsWith(first)) return false;
    let end = first.length;
    for (const part of others) {
      const found = lower.indexOf(part, end);
      if (found < 0) return false;
      end = found + part.length;
    }
    return lower.length - last.length >= end && lower.endsWith(last);
  };
}
