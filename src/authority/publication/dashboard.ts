import { publishedDocument } from '../../contract/documents.ts';
import { jsonText } from '../../json/write.ts';
import { dashboard } from '../../views/dashboard.ts';
import type { Handler } from '../engine/admission.ts';

/** How long counts of nodes may lag behind; every commit takes the document back at once. */
const LAG = 500;

export const refreshDashboard: Handler<'refreshDashboard'> = (na, unit) => {
  if (na.publisher.isCurrent('dashboard', unit.at)) return null;
  const { networkName, networkVersion } = na.settings;
  const model = dashboard(
    {
      networkName,
      networkVersion,
      ready: na.store.health() === null,
      activeNodes: na.liveness.activeCount(unit.at),
      trackedNodes: na.counts.keptCertificates() - na.counts.revokedCertificates(),
      recognition: na.recognition,
      feeds: [...na.subjects.allCommitted('revocation-feed')].map(([, { context }]) => context),
      trustCycle: na.trustCycles.newest(),
      recentChanges: na.recentChanges.list(),
    },
    unit.at,
  );
  na.publisher.publish('dashboard', publishedDocument(jsonText(model), unit.at + LAG));
  return null;
};
