/** What the NA tells of itself: counts for /metrics, and whether it can serve. */
import { jsonText } from '../../json/write.ts';
import { Refusal } from '../../refusal.ts';
import type { Handler } from '../engine/execute.ts';
import { currentCrlSequence } from './crl.ts';

export const readCounts: Handler<null> = (na, unit) =>
  jsonText({
    issued_certificates: na.counts.issuedCertificates(),
    active_nodes: na.liveness.activeCount(unit.at),
    revoked_certificates: na.counts.revokedCertificates(),
    crl_sequence: currentCrlSequence(na),
    policy_versions: na.counts.policyVersions(),
  });

/** Answers once an edge holds everything that is published: answers follow publications in order. */
export const awaitPublications: Handler<null> = () => '{}';

/** Database connectivity and migration state; nothing about where the database is. */
export const checkReadiness: Handler<null> = (na) => {
  if (na.store.health() !== null) throw new Refusal('service_not_ready');
  return '{"status":"ready"}';
};
