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
