import { jsonText } from '../../base/json/write.ts';
import { inSlices } from '../../base/slices.ts';
import { publishedDocument } from '../../protocol/contract/documents.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import { dashboard } from '../views/dashboard.ts';
import { horizonSummary } from '../views/horizon.ts';
import { endsOf } from './horizon.ts';
import { currentPosture } from './posture.ts';

/** How long node counts may lag behind; a relevant commit withdraws the document at once. */
const LAG = 500;

/** Answers when the dashboard is current; concurrent readers share one build. */
export const refreshDashboard: Handler<'refreshDashboard'> = (na, unit) => {
  if (na.publisher.isCurrent('dashboard', unit.at)) return null;
  unit.whenCommitted(() => na.dashboardPace.take(() => build(na)));
  return null;
};

function build(na: Authority): Promise<undefined> | undefined {
  const counting = na.fleetCounts.take(na.runtime.now());
  const rest = () => inSlices(publishDashboard(na));
  return counting === undefined ? rest() : counting.then(rest);
}

/** The rows are rendered in slices. What is published then is read at once, so all of it agrees. */
function* publishDashboard(na: Authority): Generator<void, undefined> {
  const { recognition, dashboardTreaties } = na;
  if (na.publisher.isCurrent('dashboard', na.runtime.now())) return;
  yield* dashboardTreaties.prepare(recognition.edges(), na.runtime.now());
  const ends = yield* na.expiryCensus.take();
  const now = na.runtime.now();
  const { networkName, networkVersion } = na.settings;
  const model = dashboard(
    {
      networkName,
      networkVersion,
      ready: na.store.health() === null,
      activeNodes: na.liveness.activeCount(now),
      trackedNodes: na.counts.keptCertificates() - na.counts.revokedCertificates(),
      recognition,
      treaties: dashboardTreaties.list(recognition.edges(), now),
      feeds: [...na.subjects.allCommitted('revocation-feed')].map(([, { context }]) => context),
      trustCycle: na.recentAudit.trustCycle(),
      recentChanges: na.recentAudit.changes(),
      horizon: horizonSummary(endsOf(na, ends)),
      instances: na.hostStatus().instances,
      judge(counted) {
        na.counted.facts = counted;
        return currentPosture(na, now);
      },
    },
    now,
  );
  na.publisher.publish('dashboard', publishedDocument(jsonText(model), now + LAG));
}
