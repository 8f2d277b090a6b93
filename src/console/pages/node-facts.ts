/** What the console reads of one node. */
import { AuthorityError } from '../../client/authority-error.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import type { CertificateRow } from '../../protocol/rows/certificate.ts';
import type { Context } from '../context.ts';
import { eachNode } from './node-rows.ts';

/** A key renews often; the rows are bounded by retention. */
const MOST_CERTIFICATES = 1000;

/** The certificates of a key that are stored, the newest first. */
export async function certificatesOf(context: Context, key: string): Promise<CertificateRow[]> {
  const rows: CertificateRow[] = [];
  for await (const row of eachNode(context, { key })) {
    if (row.node_public_key === key) rows.push(row);
    if (rows.length === MOST_CERTIFICATES) break;
  }
  return rows.sort((a, b) => (a.issued_at < b.issued_at ? 1 : -1));
}

/** Null if no agent is registered with the key. */
export function agentOf({ publicClient }: Context, key: string): Promise<AgentDescriptor | null> {
  return publicClient.readAgent({ node_public_key: key }).catch((error: unknown) => {
    if (error instanceof AuthorityError && error.status === 404) return null;
    throw error;
  });
}
