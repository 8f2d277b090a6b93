/**
 * Finds nodes by name, label or host name [core-4-17]. Clients test what they get once more before they change it: an
 * authority may be too old to know a filter.
 */
/** Empty lists do not filter. */
export interface DescriptionFilter {
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
