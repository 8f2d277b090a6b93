/** Which certificates stand for a node that reports: each such node counts once, however many certificates it has. */
import type { Liveness } from '../liveness/last-contact.ts';
import type { Subject } from '../subjects/kinds.ts';
import type { CertificateIndex } from './certificate-index.ts';

export interface NodeReports {
  /**
   * The node's last report, under this certificate or the previous one. Null if the node never reported, if it has a
   * newer certificate, or if this one was revoked or expired before `since`.
   */
  of(id: string, certificate: Subject<'certificate'>, since: number): string | null;
}

export interface NodeReportsOptions {
  readonly certificates: CertificateIndex;
  readonly liveness: Liveness;
}

/** Placeholder statuses that are kept until a node sends its first report. */
const NOT_REPORTED = new Set(['joined', 'renewed']);

export function createNodeReports({ certificates, liveness }: NodeReportsOptions): NodeReports {
  function reportOf(id: string, renewedFrom: string | null): string | null {
    const own = liveness.statusOf(id);
    if (!NOT_REPORTED.has(own)) return own;
    const before = renewedFrom === null ? own : liveness.statusOf(renewedFrom);
    return NOT_REPORTED.has(before) || before === '' ? null : before;
  }

  return {
    of(id, { value, context }, since) {
      const { nodePublicKey, expiresAt, renewedAt, renewedFrom } = context;
      if (value === 'revoked' || renewedAt !== null || expiresAt <= since) return null;
      const report = reportOf(id, renewedFrom);
      return report !== null && certificates.isNewest(id, nodePublicKey) ? report : null;
    },
  };
}
