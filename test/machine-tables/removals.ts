import { removalCountMachine } from '../../machines/removal-count.ts';
import { webhookMachine } from '../../machines/webhook.ts';
import { absent, testTable } from '../support/state-tables.ts';

const began = { value: 'posting', context: { delivered: 7 } };
const begin = { type: 'begin', after: 7 };
const deliver = { type: 'deliver', index: 9 };

testTable(webhookMachine, [
  ['a new webhook begins after an event', absent, begin, '', { posting: { delivered: 7 } }],
  ['it has taken the events up to another', began, deliver, '', { posting: { delivered: 9 } }],
]);

// Count of subjects removed by retention

const counted = { value: 'counting', context: { removed: 2 } };
const remove = (count: number) => ({ type: 'remove', count });

testTable(removalCountMachine, [
  ['the first removals are counted', absent, remove(2), '', { counting: { removed: 2 } }],
  ['later ones are added', counted, remove(3), '', { counting: { removed: 5 } }],
]);
