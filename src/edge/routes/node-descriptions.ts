/** The filters of lists by names and labels of nodes [core-4-21]. */
import type { Input } from '../../protocol/api/input.ts';
import { refused } from '../../protocol/api/input.ts';
import { MOST_VALUES } from '../../protocol/api/parameters.ts';
import type { DescriptionFilter } from '../../protocol/rows/description-filter.ts';
import { isLabel, isNodeName } from '../../protocol/rows/node-description.ts';
import { type Query, valuesOf } from '../query.ts';
import { repeatableFilter } from './listing.ts';

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
  if (names.length > MOST_VALUES || !names.every(isNodeName)) {
    return refused('invalid_name');
  }
  const labels = valuesOf(query, 'label');
  if (labels.length > MOST_VALUES || !labels.every(isLabel)) {
    return refused('invalid_labels');
  }
  return { ok: true, value: { name: names, label: labels } };
}
