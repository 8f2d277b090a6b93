import { nodeDescriptionMachine } from '../../machines/node-description.ts';
import { absent, testTable } from '../support/state-tables.ts';

// Description of a node [core-4-21]

const described = {
  value: 'described',
  context: { name: 'web-1', labels: ['env=prod', 'zone=eu'], hostname: 'host-1' },
};
const many = (count: number) => Array.from({ length: count }, (_, i) => `l${i}=`).sort();
const full = { value: 'described', context: { ...described.context, labels: many(16) } };
const join = { type: 'join', name: null, labels: null, hostname: null };
const change = { type: 'change', isKnown: true, name: null, set: [], removed: [] };

const first = { name: 'web-1', labels: ['env=prod'], hostname: 'host-1' };
const relabel = { ...join, labels: ['env=test'] };
const relabeled = { described: { labels: ['env=test'] } };
const describe = { ...change, name: 'web-1', set: ['zone=eu'] };
const named = { name: 'web-1', labels: ['zone=eu'], hostname: null };
const unname = { ...change, name: '' };
const setSome = { ...change, set: ['env=test', 'a=1'], removed: ['zone', 'none'] };
const hasSome = { described: { labels: ['a=1', 'env=test'] } };
const gone = { ...change, isKnown: false, name: 'web-2' };
const added = { ...change, set: ['m=1'] };
const others = full.context.labels.filter((label) => label !== 'l0=');
const swapped = { described: { labels: [...others, 'm=1'] } };

testTable(nodeDescriptionMachine, [
  ['a join describes the node', absent, { ...join, ...first }, 'described', { described: first }],
  ['a join without a description leaves none', absent, join, 'unchanged'],
  ['a further join replaces what it has', described, relabel, 'described', relabeled],
  ['a further join with the same', described, { ...join, ...described.context }, 'unchanged'],
  ['an operator describes a node', absent, describe, 'described', { described: named }],
  ['described as before', absent, { ...change, name: '', removed: ['zone'] }, 'unchanged'],
  ['a node of which no certificate is stored', absent, gone, 'node_not_found'],
  ['too many labels at once', absent, { ...change, set: many(17) }, 'too_many_labels'],
  ['labels are set and removed, others stay', described, setSome, 'described', hasSome],
  ['an empty name removes it', described, unname, 'described', { described: { name: null } }],
  ['the same again', described, { ...change, name: 'web-1', set: ['env=prod'] }, 'unchanged'],
  ['the 17th label', full, added, 'too_many_labels'],
  ['another label in the place of one', full, { ...added, removed: ['l0'] }, 'described', swapped],
  ['a node whose certificates were removed meanwhile', described, gone, 'node_not_found'],
]);
