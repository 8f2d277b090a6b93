/** The complete HTTP API: every declared operation is a route. */
import type { Operation } from '../../protocol/api/define.ts';
import { API, type Api, type OperationName } from '../../protocol/api/table.ts';
import { documentParts } from '../documents/documents.ts';
import { healthParts } from '../documents/health.ts';
import { type EdgePart, type EdgeParts, routeOf } from '../operations/operations.ts';
import { trustQuestionParts } from '../operations/trust-question.ts';
import { dashboardParts } from '../pages/dashboard.ts';
import { detailsPageParts } from '../pages/details-pages.ts';
import { graphPageParts } from '../pages/graph-pages.ts';
import { pageParts } from '../pages/pages.ts';
import { trustPageParts } from '../pages/trust-page.ts';
import type { Route } from '../request/route.ts';
import { agentParts } from './agents.ts';
import { disclosureParts } from './disclosure.ts';
import { enrollmentParts } from './enrollment.ts';
import { eventParts } from './events.ts';
import { recognitionParts } from './recognition.ts';
import { rosterParts } from './roster.ts';
import { treatyParts } from './treaties.ts';

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
