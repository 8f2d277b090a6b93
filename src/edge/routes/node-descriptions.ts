/** The route for operators to name nodes, and the filters of lists by names and labels [core-4-21]. */
import Type from 'typebox';
import { DescribedNode } from '../../protocol/answers/operators.ts';
import type { Input } from '../../protocol/contract/claims.ts';
import type { DescriptionFilter } from '../../protocol/contract/inputs.ts';
import {
  ChangedName,
  isLabel,
  isNodeName,
  LabelChanges,
  labelTexts,
} from '../../protocol/rows/node-description.ts';
import { bodyReader, mapped, refused } from '../body.ts';
import { firstValue, type Query } from '../query.ts';
import type { RouteEntry } from '../route.ts';
import { filter } from './listing.ts';
import { operatorRoute } from './operator-route.ts';

const descriptionBody = bodyReader(
  Type.Object({ name: Type.Optional(ChangedName), labels: Type.Optional(LabelChanges) }),
  { codes: { name: 'invalid_name', labels: 'invalid_labels' } },
);

export const nodeDescriptionRoutes: readonly RouteEntry[] = [
  operatorRoute({
    method: 'POST',
    path: '/admin/nodes/{node_public_key}',
    call: 'describeNode',
    limit: 'ADMIN',
    summary: 'Set the name and labels of a node',
    description:
      'Only operators see them. They belong to the node key, so they survive renewals and further joins.',
    body: descriptionBody.schema,
    exampleNeeds: { what: 'the key of a node of this network', otherwise: 'node_not_found' },
    answer: DescribedNode,
    refusals: ['invalid_name', 'invalid_labels', 'node_not_found', 'too_many_labels'],
    input(request) {
      const nodePublicKey = request.params.node_public_key ?? '';
      return mapped(descriptionBody.read(request.body), ({ name = null, labels = {} }) => {
        const changes = Object.entries(labels);
        const set = changes.flatMap(([key, value]) => (value === null ? [] : [[key, value]]));
        return {
          nodePublicKey,
          name,
          set: labelTexts(Object.fromEntries(set)),
          removed: changes.flatMap(([key, value]) => (value === null ? [key] : [])),
        };
      });
    },
  }),
];

/** Query parameters that filter a list by the names and labels of nodes. */
export const DESCRIPTION_QUERY = {
  name: filter('Only those of nodes with this name; * stands for any text'),
  label: filter('Only those of nodes with this label: a key, or key=value'),
};

export function descriptionFilter(query: Query): Input<DescriptionFilter> {
  const name = firstValue(query, 'name');
  if (name !== null && !isNodeName(name)) {
    return refused('invalid_name');
  }
  const label = firstValue(query, 'label');
  if (label !== null && !isLabel(label)) {
    return refused('invalid_labels');
  }
  return { ok: true, value: { name, label } };
}
