/** Which nodes are wanted: the state of the table of nodes in its URL, and as filters of the authority. */
import { parseDuration } from '../../base/duration.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { CertificateFilters } from '../../client/nodes.ts';
import {
  CERTIFICATE_STATUS_FILTERS,
  type CertificateStatusFilter,
} from '../../protocol/rows/certificate.ts';
import { labelsOf } from '../../protocol/rows/node-description.ts';
import { textIn } from '../forms.ts';
import { FormProblem } from '../page.ts';

const SORTS = ['name', 'contact', 'expires'] as const;

export interface NodeQuery {
  readonly search: string;
  /** Null for any. */
  readonly status: CertificateStatusFilter | null;
  readonly role: string;
  readonly health: string;
  readonly label: string;
  /** A duration such as `7d` or `1h30m`. */
  readonly silent: string;
  readonly lapsing: string;
  readonly sort: (typeof SORTS)[number] | null;
  readonly isDescending: boolean;
  /** Which meaning of the searched text the cursor belongs to. */
  readonly meaning: number;
  readonly cursor: string;
}

/** Filters that can have several values have lists. */
interface Search extends Omit<CertificateFilters, 'role' | 'label'> {
  readonly role?: readonly string[];
  readonly label?: readonly string[];
}

const LONGEST = 256;

/** Parameters that are not valid are ignored, or refused by the authority, in its words. */
export function nodeQuery(query: URLSearchParams): NodeQuery {
  const text = (name: string) => textIn(query, name).slice(0, LONGEST);
  const sort = text('sort');
  return {
    search: text('q'),
    status: statusIn(query.get('status')),
    role: text('role'),
    health: text('health'),
    label: text('label'),
    silent: text('silent'),
    lapsing: text('lapsing'),
    sort: SORTS.find((each) => each === sort.replace(/^-/, '')) ?? null,
    isDescending: sort.startsWith('-'),
    meaning: /^\d$/.test(text('meaning')) ? Number(text('meaning')) : 0,
    cursor: query.get('cursor') ?? '',
  };
}

/** Machines that are there, unless the URL says otherwise; `any` is for certificates of every status. */
function statusIn(text: string | null): CertificateStatusFilter | null {
  if (text === 'any') return null;
  return CERTIFICATE_STATUS_FILTERS.find((each) => each === text) ?? 'in_use';
}

/** The parameters of the URL for a query, without the default ones. */
export function parametersOf(query: NodeQuery, changed: Partial<NodeQuery> = {}): URLSearchParams {
  const { search, status, sort, isDescending, meaning, ...others } = { ...query, ...changed };
  const all = {
    q: search,
    status: status === 'in_use' ? '' : (status ?? 'any'),
    ...others,
    meaning: meaning === 0 ? '' : String(meaning),
    sort: sort === null ? '' : `${isDescending ? '-' : ''}${sort}`,
  };
  const given = Object.entries(all).filter(([, value]) => value !== '');
  return new URLSearchParams(given.map(([name, value]): [string, string] => [name, value]));
}

/**
 * Filters of the authority, for each meaning that the searched text can have, the likeliest first. A meaning that
 * contradicts another filter is left out. Throws a `FormProblem` for a wrong duration.
 */
export function filtersFor(query: NodeQuery, now: number): readonly CertificateFilters[] {
  const filters = filtersOf(query, now);
  return searchesFor(query.search).flatMap((search) => {
    const { role = [], label = [] } = search;
    if (role.some((each) => filters.role?.includes(each) === false)) return [];
    const labels = [...(filters.label ?? []), ...label];
    return {
      ...withoutStatus(filters, search),
      ...search,
      ...(labels.length > 0 && { label: labels }),
    };
  });
}

/** What is named by its id or key is shown whatever has become of it, unless a status is chosen. */
function withoutStatus(filters: Search, search: Search) {
  if (search.cert_id === undefined && search.key === undefined) return filters;
  const { status, ...others } = filters;
  return status === 'in_use' ? others : filters;
}

/** The filters for everything but the text that is searched. */
function filtersOf(query: NodeQuery, now: number): Search {
  const { status, role, health, label, silent, lapsing } = query;
  const silentMs = durationMs(silent, 'Silent for');
  const lapsingMs = durationMs(lapsing, 'Expires within');
  return {
    ...(status !== null && { status }),
    ...(role !== '' && { role: listIn(role) }),
    ...(health !== '' && { health }),
    ...(label !== '' && { label: labelsOf(label) }),
    ...(silentMs !== null && { silent_since: formatInstant(now - silentMs) }),
    ...(lapsingMs !== null && { expires_before: formatInstant(now + lapsingMs) }),
  };
}

/**
 * What a searched text can mean: an id, a key, an address, labels, a role, or part of a name, of one of several names
 * that are separated by commas, or of a host name.
 */
export function searchesFor(text: string): readonly Search[] {
  if (text === '') return [{}];
  if (ID.test(text)) return [{ cert_id: text.toLowerCase() }, { name: `*${text}*` }];
  if (KEY.test(text)) return [{ key: text }];
  if (text.startsWith('role:')) return [{ role: listIn(text) }];
  if (text.includes('=')) return labelSearches(text);
  const part = partOf(text);
  const names = text.split(',').map((each) => each.trim());
  return [
    ...(ADDRESS.test(text) ? [{ remote_addr: text }] : []),
    { name: part },
    ...(names.length > 1 && !names.includes('') ? [{ name: names.map(partOf) }] : []),
    ...(HOST.test(part) ? [{ hostname: part }] : []),
    ...(KEY_BEGINNING.test(text) ? [{ key: text }] : []),
  ];
}

/** The text can be one label whose value looks like another one. */
function labelSearches(text: string): readonly Search[] {
  const labels = labelsOf(text);
  return [{ label: [text] }, ...(labels.length > 1 ? [{ label: labels }] : [])];
}

function listIn(text: string): readonly string[] {
  return text.split(/[,\s]+/);
}

function partOf(text: string): string {
  return text.includes('*') ? text : `*${text}*`;
}

const ADDRESS = /^(?:\d{1,3}\.[\d.]*|[0-9a-f]{0,4}:[0-9a-f:.]*)$/i;
const ID = /^[0-9a-f]{8}(?:-?[0-9a-f]*)*$/i;
const KEY = /^[A-Za-z0-9+/]{43}=$/;
const KEY_BEGINNING = /^[A-Za-z0-9+/]{8,43}$/;
const HOST = /^[A-Za-z0-9._*-]+$/;

/** Milliseconds; null if the field is empty. */
function durationMs(text: string, what: string): number | null {
  if (text === '') return null;
  const parsed = parseDuration(text);
  if (parsed !== null) return parsed;
  // Without it, more would match than was meant, and could be revoked.
  throw new FormProblem(`${what} must be a duration such as 7d or 1h30m.`);
}
