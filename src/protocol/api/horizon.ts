/** What changes for everyone at some point: expirations [core-4-20], and the authority key [authority-keys-11]. */
import { Adoption } from '../rows/adoption.ts';
import { Horizon } from '../rows/dashboard.ts';
import { operatorQuery } from './define.ts';

export const readHorizon = operatorQuery('GET /admin/horizon', {
  summary: 'What lapses, by kind and week, as counts',
  answer: Horizon,
  refusals: ['rate_limit_exceeded'],
});

export const readAdoption = operatorQuery('GET /admin/authority-keys/adoption', {
  summary: 'Which nodes and treaties have followed a change of the authority key',
  answer: Adoption,
  refusals: ['rate_limit_exceeded'],
});
