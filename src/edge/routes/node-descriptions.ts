/** The route for operators to name nodes, and the filters of lists by names and labels [core-4-21]. */
import Type from 'typebox';
import { DescribedNode } from '../../protocol/answers/operators.ts';
import type { Input } from '../../protocol/contract/claims.ts';
import { MAX_FILTER_VALUES } from '../../protocol/contract/inputs.ts';
import type { DescriptionFilter } from '../../protocol/rows/description-filter.ts';
import {
  ChangedName,
  isLabel,
  isNodeName,
  LabelChanges,
  labelTexts,
} from '../../protocol/rows/node-description.ts';
import { bodyReader, mapped, refused } from '../body.ts';
import { type Query, valuesOf } from '../query.ts';
import type { RouteEntry } from '../route.ts';
import { repeatableFilter } from './listing.ts';
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
  name: repeatableFilter(
    'Only those of nodes with this name, or any of these; * stands for any text',
  ),
  label: repeatableFilter(
    'Only those of nodes with this label, or all of these: a key, or key=value',
  ),
};

export function descriptionFilter(query: Query): Input<DescriptionFilter> {
  const names = valuesOf(query, 'name');
  if (names.length > MAX_FILTER_VALUES || !names.every(isNodeName)) {
    return refused('invalid_name');
  }
  const labels = valuesOf(query, 'label');
  if (labels.length > MAX_FILTER_VALUES || !labels.every(isLabel)) {
    return refused('invalid_labels');
  }
  return { ok: true, value: { names, labels } };
}
