/** The complete HTTP API: every declared operation is a route. */
import type { Operation } from '../../protocol/api/define.ts';
import { API, type Api, type OperationName } from '../../protocol/api/table.ts';
import type { Route } from '../request/route.ts';
import { agentParts } from './agents.ts';
import { dashboardParts } from './dashboard.ts';
import { detailsPageParts } from './details-pages.ts';
import { disclosureParts } from './disclosure.ts';
import { documentParts } from './documents.ts';
import { enrollmentParts } from './enrollment.ts';
import { eventParts } from './events.ts';
import { graphPageParts } from './graph-pages.ts';
import { healthParts } from './health.ts';
import { type EdgePart, type EdgeParts, routeOf } from './operations.ts';
import { pageParts } from './pages.ts';
import { recognitionParts } from './recognition.ts';
import { rosterParts } from './roster.ts';
import { treatyParts } from './treaties.ts';
import { trustPageParts } from './trust-page.ts';
import { trustQuestionParts } from './trust-question.ts';

/** The operations that nobody but the edge answers. */
type Own = {
  [Name in OperationName]: Api[Name]['kind'] extends 'document' ? Name : never;
}[OperationName];

const PARTS: EdgeParts & Required<Pick<EdgeParts, Own>> = {
  ...healthParts,
  ...documentParts,
  ...enrollmentParts,
  ...rosterParts,
  ...eventParts,
  ...agentParts,
  ...treatyParts,
  ...recognitionParts,
  ...disclosureParts,
  ...trustQuestionParts,
  ...trustPageParts,
  ...dashboardParts,
  ...graphPageParts,
  ...detailsPageParts,
  ...pageParts,
};

export const ROUTES: readonly Route[] = Object.entries<Operation>(API).map(([given, operation]) => {
  const name = given as OperationName;
  return routeOf(name, operation, (PARTS[name] as EdgePart | undefined) ?? null);
});
