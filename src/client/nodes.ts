/**
 * Finds nodes for operators: their certificates by filters, and their names. Found rows are tested here too, because an
 * older authority does not know all filters, or reads only one value of those that may be repeated, and what is found may
 * be revoked [core-4-17].
 */
import { parseRequestTimestamp } from '../base/timestamp.ts';
import type { NamedEntry } from '../protocol/audit-sentence.ts';
import {
  type CertificateRow,
  hasStatus,
  isAccepted,
  isInHealth,
  isInUse,
} from '../protocol/rows/certificate.ts';
import { descriptionTest, isNodeName, labelTexts } from '../protocol/rows/node-description.ts';
import { pagesOf, type Sent } from './operations.ts';
import type { OperatorClient } from './operator-client.ts';

export type CertificateFilters = Sent<'listCertificates'>;

type Client = Pick<OperatorClient, 'listCertificates'>;

export function certificatePages(
  client: Client,
  filters: CertificateFilters,
): AsyncGenerator<readonly CertificateRow[], void> {
  const isWanted = certificateTest(filters);
  return pagesOf(
    (page) => client.listCertificates({ ...filters, ...page }),
    ({ certificates }) => certificates.filter(isWanted),
  );
}

/** The ids of the certificates of nodes with this name, and their keys: most entries of the audit log have only these. */
export async function idsOfNode(client: Client, name: string): Promise<string[]> {
  const ids: string[] = [];
  if (!isNodeName(name)) return ids;
  for await (const rows of certificatePages(client, { name })) {
    for (const { cert_id, node_public_key } of rows) ids.push(cert_id, node_public_key);
  }
  return ids;
}

/**
 * Whether a certificate is still accepted and still passes the filters, asked just before it is revoked: its node may
 * have reported again, or been renamed, while others were being revoked.
 */
export async function isStillMeant(
  client: Client,
  certId: string,
  filters: CertificateFilters,
): Promise<boolean> {
  const { certificates } = await client.listCertificates({ ...filters, cert_id: certId, limit: 1 });
  const isWanted = certificateTest(filters);
  return certificates.some(
    (row) => row.cert_id === certId && isAccepted(row.status) && isWanted(row),
  );
}

function certificateTest(filters: CertificateFilters): (row: CertificateRow) => boolean {
  const { status, hostname, health, remote_addr: address, silent_since: silentSince } = filters;
  const roles = valuesOf(filters.role);
  const isDescribed = descriptionTest({
    name: valuesOf(filters.name),
    label: valuesOf(filters.label),
    hostname: hostname ?? null,
  });
  const since = silentSince === undefined ? null : parseRequestTimestamp(silentSince);
  return (row) =>
    (isDescribed?.({ ...row, labels: labelTexts(row.labels ?? {}) }) ?? true) &&
    (status === undefined || hasStatus(row.status, status)) &&
    (roles.length === 0 || roles.some((role) => row.roles.includes(role))) &&
    (address === undefined || row.remote_addr.startsWith(address)) &&
    (health === undefined || isInHealth(row.node_status, health)) &&
    (since === null || (isInUse(row.status) && Date.parse(row.last_contact) < since));
}

function valuesOf(filter: string | readonly string[] | undefined): readonly string[] {
  if (filter === undefined) return [];
  return typeof filter === 'string' ? [filter] : filter;
}

/** Adds the names that nodes have now, each asked once, unless earlier entries have said them. */
export function nodeNames(client: Client): (entries: readonly NamedEntry[]) => Promise<void> {
  const asked = new Map<string, Promise<string | undefined>>();

  return async (entries) => {
    await Promise.all(entries.map(addTo));
  };

  async function addTo({ entry: { event_type: type, details }, names }: NamedEntry): Promise<void> {
    // The name that a node has now is not the one that it had before it was named.
    if (type === 'node_described') return;
    for (const [filter, id] of [
      ['cert_id', details.cert_id],
      ['key', details.node_public_key],
    ] as const) {
      if (typeof id !== 'string' || names.has(id)) continue;
      const known = asked.get(id) ?? nameNow({ [filter]: id });
      asked.set(id, known);
      const name = await known;
      if (name !== undefined) names.set(id, name);
    }
  }

  async function nameNow(filter: { cert_id?: string; key?: string }): Promise<string | undefined> {
    const { certificates } = await client.listCertificates({ ...filter, limit: 1 });
    return certificates[0]?.name;
  }
}
