/** What operators call the nodes, and what the nodes call themselves [core-4-21]. Only operators read it. */
import type {
  NodeDescription,
  NodeDescriptionRefusal,
} from '../../../machines/node-description.ts';
import { Refusal } from '../../base/refusal.ts';
import type { DescriptionFilter } from '../../protocol/contract/inputs.ts';
import { labelsIn } from '../../protocol/rows/node-description.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import { refusalIn } from '../subjects/kinds.ts';

/** The members of a description; absent and null ones are not set. */
type Described = {
  readonly [Member in keyof NodeDescription]?: NodeDescription[Member] | null | undefined;
};

export const describeNode: Handler<'describeNode'> = (na, unit, given, operator) => {
  const { nodePublicKey, name, set, removed } = given;
  const isKnown = na.certificates.ownedBy(nodePublicKey).length > 0;
  const emitted = unit.send('node-description', nodePublicKey, {
    type: 'change',
    isKnown,
    name,
    set,
    removed,
  });
  const refused = refusalIn<NodeDescriptionRefusal>(emitted);
  if (refused !== null) throw new Refusal(refused.refusal);
  const context = unit.current('node-description', nodePublicKey)?.context;
  if (context !== undefined && emitted.some(({ type }) => type === 'described')) {
    unit.audit('node_described', {
      node_public_key: nodePublicKey,
      name: context.name,
      labels: labelsIn(context.labels),
      remote_addr: operator.remoteAddr,
    });
  } else unit.awaitEarlierCommits();
  return { node_public_key: nodePublicKey, ...descriptionRow(context) };
};

/** The committed description of the node with this key. */
export function descriptionOf(na: Authority, nodePublicKey: string): NodeDescription | undefined {
  return na.subjects.committed('node-description', nodePublicKey)?.context;
}

/** The members that are set, as they are in rows. */
export function descriptionRow({ name, labels, hostname }: Described = {}) {
  return {
    ...(name != null && { name }),
    ...(labels != null && labels.length > 0 && { labels: labelsIn(labels) }),
    ...(hostname != null && { hostname }),
  };
}

/** Approximate number of characters in these members. */
export function lengthOfDescription({ name, labels, hostname }: Described = {}): number {
  return (name?.length ?? 0) + (labels?.join('","').length ?? 0) + (hostname?.length ?? 0);
}

/** Tests descriptions; null if everything passes. */
export function descriptionTest({
  name,
  label,
  hostname = null,
}: DescriptionFilter & { readonly hostname?: string | null }):
  | ((described: Described | undefined) => boolean)
  | null {
  if (name === null && label === null && hostname === null) return null;
  const isName = name === null ? null : textTest(name);
  const isHostname = hostname === null ? null : textTest(hostname);
  return (described = {}) =>
    (isName === null || (described.name != null && isName(described.name))) &&
    (isHostname === null || (described.hostname != null && isHostname(described.hostname))) &&
    (label === null || hasLabel(described.labels ?? [], label));
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
