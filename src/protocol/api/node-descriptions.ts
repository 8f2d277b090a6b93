/** Names and labels of nodes, for their operators only [core-4-21]. */
import { DescribedNode } from '../answers/operators.ts';
import { ChangedName, isLabel, isNodeName, LabelChanges } from '../rows/node-description.ts';
import { operatorCommand } from './define.ts';
import { optional } from './members.ts';
import { texts } from './parameters.ts';

export const describeNode = operatorCommand('POST /admin/nodes/{node_public_key}', {
  summary: 'Set the name and labels of a node',
  description:
    'Only operators see them. They belong to the node key, so they survive renewals and further joins.',
  body: {
    name: optional(ChangedName, null, 'invalid_name'),
    labels: optional(LabelChanges, null, 'invalid_labels'),
  },
  exampleNeeds: { what: 'the key of a node of this network', otherwise: 'node_not_found' },
  answer: DescribedNode,
  refusals: ['node_not_found', 'too_many_labels'],
});

/** Filters of lists by what operators call nodes. */
export const descriptionParameters = {
  name: texts(
    'Only those of nodes with this name, or any of these; * stands for any text',
    'invalid_name',
    isNodeName,
  ),
  label: texts(
    'Only those of nodes with this label, or all of these: a key, or key=value',
    'invalid_labels',
    isLabel,
  ),
};
