/**
 * Finds nodes for operators: their certificates by filters, and their names. Found rows are tested here too, because an
 * older authority does not know all filters, or reads only one value of those that may be repeated, and what is found may
 * be revoked [core-4-17].
 */
import { parseRequestTimestamp } from '../base/timestamp.ts';
import { MOST_ROWS } from '../protocol/api/define.ts';
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

/** Adds the names that nodes have now, unless earlier entries have said them. */
export function nodeNames(client: Client): (entries: readonly NamedEntry[]) => Promise<void> {
  const asked = new Map<string, Promise<string | undefined>>();

  return async (entries) => {
    const unnamed = entries.filter(isUnnamed);
    const all = unnamed.length > 1 ? await namesInOnePage() : null;
    await Promise.all(unnamed.map((each) => addTo(each, all)));
  };

  async function addTo({ entry, names }: NamedEntry, all: Names | null): Promise<void> {
    const ids = idsIn(entry);
    const [id = ''] = ids;
    const filter = id === entry.details.node_public_key ? { key: id } : { cert_id: id };
    const name = all === null ? await nameNow(id, filter) : all.get(id);
    if (name === undefined) return;
    for (const each of ids) if (!names.has(each)) names.set(each, name);
  }

  /** Null if there are too many: then each node is asked about by itself, once. */
  async function namesInOnePage(): Promise<Names | null> {
    const page = await client.listCertificates({ name: '*', limit: MOST_ROWS });
    if (page.next_cursor !== undefined) return null;
    const names = new Map<string, string>();
    for (const { cert_id, node_public_key, name } of page.certificates) {
      if (name !== undefined) names.set(cert_id, name).set(node_public_key, name);
    }
    return names;
  }

  function nameNow(id: string, filter: CertificateFilters): Promise<string | undefined> {
    const known =
      asked.get(id) ??
      client.listCertificates({ ...filter, limit: 1 }).then(({ certificates: [row] }) => row?.name);
    asked.set(id, known);
    return known;
  }
}

type Names = ReadonlyMap<string, string>;

/** Of the node that the entry is about: its key, which keeps its name, and its certificate. */
function idsIn({ details }: NamedEntry['entry']): string[] {
  return [details.node_public_key, details.cert_id].filter((id) => typeof id === 'string');
}

/** The name that a node has now is not the one that it had before it was named. */
function isUnnamed({ entry, names }: NamedEntry): boolean {
  return entry.event_type !== 'node_described' && !idsIn(entry).every((id) => names.has(id));
}
