/** What operators call the nodes, and what the nodes call themselves [core-4-21]. Only operators read it. */
import { Refusal } from '../protocol/refusals.ts';
import { type Described, labelsIn, labelTexts } from '../protocol/rows/node-description.ts';
import type { Handler } from './engine/admission.ts';
import { refusalIn } from './subjects/kinds.ts';

export const describeNode: Handler<'describeNode'> = (na, unit, given, operator) => {
  const { node_public_key: nodePublicKey, name } = given;
  const labels = Object.entries(given.labels ?? {});
  const set = labels.flatMap(([key, value]) => (value === null ? [] : [[key, value]]));
  const isKnown = na.certificates.ownedBy(nodePublicKey).length > 0;
  const emitted = unit.send('node-description', nodePublicKey, {
    type: 'change',
    isKnown,
    name,
    set: labelTexts(Object.fromEntries(set)),
    removed: labels.flatMap(([key, value]) => (value === null ? [key] : [])),
  });
  const refused = refusalIn(emitted);
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
