/** What changes for everyone at some point: expirations [core-4-20], and a change of the authority key [authority-keys-11]. */
import { Adoption } from '../../protocol/rows/adoption.ts';
import { Horizon } from '../../protocol/rows/horizon.ts';
import { NOTHING, type RouteEntry } from '../route.ts';
import { countRoute } from './operator-route.ts';

export const horizonRoutes: readonly RouteEntry[] = [
  countRoute({
    path: '/admin/horizon',
    call: 'readHorizon',
    summary: 'What lapses, by kind and week, as counts',
    answer: Horizon,
    refusals: [],
    input: () => NOTHING,
  }),
  countRoute({
    path: '/admin/authority-keys/adoption',
    call: 'readAdoption',
    summary: 'Which nodes and treaties have followed a change of the authority key',
    answer: Adoption,
    refusals: [],
    input: () => NOTHING,
  }),
];
