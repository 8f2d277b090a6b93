import { removalCountMachine } from '../../machines/removal-count.ts';
import { webhookMachine } from '../../machines/webhook.ts';
import { testTable } from '../support/state-tables.ts';

// Count of subjects removed by retention

testTable(webhookMachine, [
  {
    name: 'a new webhook begins after an event',
    event: { type: 'begin', after: 7 },
    emits: [],
    to: { value: 'posting', facts: { delivered: 7 } },
  },
  {
    name: 'it has taken the events up to another',
    from: { value: 'posting', context: { delivered: 7 } },
    event: { type: 'deliver', index: 9 },
    emits: [],
    to: { value: 'posting', facts: { delivered: 9 } },
  },
]);

testTable(removalCountMachine, [
  {
    name: 'the first removals are counted',
    event: { type: 'remove', count: 2 },
    emits: [],
    to: { value: 'counting', facts: { removed: 2 } },
  },
  {
    name: 'later ones are added',
    from: { value: 'counting', context: { removed: 2 } },
    event: { type: 'remove', count: 3 },
    emits: [],
    to: { value: 'counting', facts: { removed: 5 } },
  },
]);
