import { nodeDescriptionMachine } from '../../machines/node-description.ts';
import { testTable } from '../support/state-tables.ts';

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

testTable(nodeDescriptionMachine, [
  {
    name: 'a join describes the node',
    event: { ...join, name: 'web-1', labels: ['env=prod'], hostname: 'host-1' },
    emits: ['described'],
    to: {
      value: 'described',
      facts: { name: 'web-1', labels: ['env=prod'], hostname: 'host-1' },
    },
  },
  { name: 'a join without a description leaves none', event: join, emits: ['unchanged'] },
  {
    name: 'a further join replaces only what it has',
    from: described,
    event: { ...join, labels: ['env=test'] },
    emits: ['described'],
    to: { value: 'described', facts: { labels: ['env=test'] } },
  },
  {
    name: 'a further join with the same description changes nothing',
    from: described,
    event: { ...join, ...described.context },
    emits: ['unchanged'],
  },
  {
    name: 'an operator describes a node',
    event: { ...change, name: 'web-1', set: ['zone=eu'] },
    emits: ['described'],
    to: { value: 'described', facts: { name: 'web-1', labels: ['zone=eu'], hostname: null } },
  },
  {
    name: 'an operator describes a node as before',
    event: { ...change, name: '', removed: ['zone'] },
    emits: ['unchanged'],
  },
  {
    name: 'a node of which no certificate is stored',
    event: { ...change, isKnown: false, name: 'web-1' },
    emits: ['node_not_found'],
  },
  {
    name: 'too many labels at once',
    event: { ...change, set: Array.from({ length: 17 }, (_, i) => `l${i}=`) },
    emits: ['too_many_labels'],
  },
  {
    name: 'labels are set and removed, and all others kept',
    from: described,
    event: { ...change, set: ['env=test', 'a=1'], removed: ['zone', 'none'] },
    emits: ['described'],
    to: { value: 'described', facts: { labels: ['a=1', 'env=test'] } },
  },
  {
    name: 'an empty name removes it, never the host name',
    from: described,
    event: { ...change, name: '' },
    emits: ['described'],
    to: { value: 'described', facts: { name: null } },
  },
  {
    name: 'the same name and labels again',
    from: described,
    event: { ...change, name: 'web-1', set: ['env=prod'] },
    emits: ['unchanged'],
  },
  {
    name: 'the 17th label',
    from: full,
    event: { ...change, set: ['m=1'] },
    emits: ['too_many_labels'],
  },
  {
    name: 'another label in the place of one',
    from: full,
    event: { ...change, set: ['m=1'], removed: ['l0'] },
    emits: ['described'],
    to: {
      value: 'described',
      facts: { labels: [...full.context.labels.filter((label) => label !== 'l0='), 'm=1'] },
    },
  },
  {
    name: 'a node whose certificates were removed meanwhile',
    from: described,
    event: { ...change, isKnown: false, name: 'web-2' },
    emits: ['node_not_found'],
  },
]);
