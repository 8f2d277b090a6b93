/** The whole HTTP surface: every route there is stands in this table, once. */
import type { Route } from '../http/route.ts';
import { documentRoutes } from './documents.ts';
import { enrolmentRoutes } from './enrolment.ts';
import { healthRoutes } from './health.ts';
import { operatorRoutes } from './operators.ts';
import { referenceRoutes } from './reference.ts';

export const ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...documentRoutes,
  ...enrolmentRoutes,
  ...operatorRoutes,
  ...referenceRoutes,
];
