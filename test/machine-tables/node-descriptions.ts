import { nodeDescriptionMachine } from '../../machines/node-description.ts';
import { absent, testTable } from '../support/state-tables.ts';

// Description of a node [core-4-21]

const described = {
  value: 'described',
  context: { name: 'web-1', labels: ['env=prod', 'zone=eu'], hostname: 'host-1' },
};
const full = {
  value: 'described',
  context: { ...described.context, labels: Array.from({ length: 16 }, (_, i) => `l${i}=`).sort() },
};
const join = { type: 'join', name: null, labels: null, hostname: null };
const change = { type: 'change', isKnown: true, name: null, set: [], removed: [] };

const gone = { ...change, isKnown: false, name: 'web-2' };
const added = { ...change, set: ['m=1'] };
const others = full.context.labels.filter((label) => label !== 'l0=');

testTable(nodeDescriptionMachine, [
  [
    'a join describes the node',
    absent,
    { ...join, name: 'web-1', labels: ['env=prod'], hostname: 'host-1' },
    'described',
    { described: { name: 'web-1', labels: ['env=prod'], hostname: 'host-1' } },
  ],
  ['a join without a description leaves none', absent, join, 'unchanged'],
  [
    'a further join replaces only what it has',
    described,
    { ...join, labels: ['env=test'] },
    'described',
    { described: { labels: ['env=test'] } },
  ],
  ['a further join with the same', described, { ...join, ...described.context }, 'unchanged'],
  [
    'an operator describes a node',
    absent,
    { ...change, name: 'web-1', set: ['zone=eu'] },
    'described',
    { described: { name: 'web-1', labels: ['zone=eu'], hostname: null } },
  ],
  ['described as before', absent, { ...change, name: '', removed: ['zone'] }, 'unchanged'],
  ['a node of which no certificate is stored', absent, gone, 'node_not_found'],
  [
    'too many labels at once',
    absent,
    { ...change, set: Array.from({ length: 17 }, (_, i) => `l${i}=`) },
    'too_many_labels',
  ],
  [
    'labels are set and removed, and all others kept',
    described,
    { ...change, set: ['env=test', 'a=1'], removed: ['zone', 'none'] },
    'described',
    { described: { labels: ['a=1', 'env=test'] } },
  ],
  [
    'an empty name removes it, never the host name',
    described,
    { ...change, name: '' },
    'described',
    { described: { name: null } },
  ],
  ['the same again', described, { ...change, name: 'web-1', set: ['env=prod'] }, 'unchanged'],
  ['the 17th label', full, added, 'too_many_labels'],
  [
    'another label in the place of one',
    full,
    { ...added, removed: ['l0'] },
    'described',
    { described: { labels: [...others, 'm=1'] } },
  ],
  ['a node whose certificates were removed meanwhile', described, gone, 'node_not_found'],
]);
