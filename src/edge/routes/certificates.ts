/** Routes for operators to read and revoke node certificates [core-4-8], [core-4-17], [core-4-23]. */
import Type from 'typebox';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { CertificateList, Revocation } from '../../protocol/answers/operators.ts';
import type { Input } from '../../protocol/api/input.ts';
import { mapped, refused } from '../../protocol/api/input.ts';
import { MOST_VALUES } from '../../protocol/api/parameters.ts';
import { Filled, PublicKey } from '../../protocol/api/scalars.ts';
import type { CertificateFilter } from '../../protocol/contract/inputs.ts';
import { REVOCATION_REASONS } from '../../protocol/records/revocation-list.ts';
import { CERTIFICATE_STATUS_FILTERS, CertificateRow } from '../../protocol/rows/certificate.ts';
import { Contacts } from '../../protocol/rows/contacts.ts';
import { isHostName, isLabelKey } from '../../protocol/rows/node-description.ts';
import { bodyReader } from '../body.ts';
import { firstValue, type Query, valuesOf } from '../query.ts';
import { operatorOf, type RouteEntry } from '../route.ts';
import {
  filter,
  filteredPage,
  listReply,
  PAGE_QUERY,
  PAGE_REFUSALS,
  repeatableFilter,
} from './listing.ts';
import { DESCRIPTION_QUERY, descriptionFilter } from './node-descriptions.ts';
import { countRoute, operatorRoute } from './operator-route.ts';

const NEEDS_CERTIFICATE = {
  what: 'a certificate of this network',
  otherwise: 'certificate_not_found',
} as const;

const revokeBody = bodyReader(
  Type.Object({
    cert_id: Type.Optional(Filled),
    node_public_key: Type.Optional(PublicKey),
    reason: Type.Optional(Type.Enum([...REVOCATION_REASONS])),
  }),
  {
    tests: {
      target: ({ cert_id, node_public_key }) =>
        cert_id !== undefined || node_public_key !== undefined,
    },
    codes: {
      target: 'missing_cert_id',
      cert_id: 'missing_cert_id',
      node_public_key: 'invalid_node_key',
      reason: 'invalid_revocation_reason',
    },
  },
);

/** Too short for a whole key. */
const KEY_BEGINNING = /^[A-Za-z0-9+/]{8,43}$/;

/** The filters that do not concern the status. */
const FILTER_QUERY = {
  role: repeatableFilter('Only those with this role, or any of these'),
  expires_before: filter('Only those that expire before this time'),
  key: filter('Only those of this node key, or of keys that begin with at least 8 characters'),
  cert_id: filter('Only those whose id begins with this'),
  ...DESCRIPTION_QUERY,
  hostname: filter('Only those of nodes that reported this host name; * stands for any text'),
  health: filter('Only those with this node_status; unwell for all that are not healthy'),
  remote_addr: filter('Only those whose last contact came from an address that begins with this'),
  silent_since: filter('Only those in use whose nodes did not report since this time'),
};

const FILTER_REFUSALS = [
  'invalid_expires_before',
  'invalid_node_key',
  'invalid_name',
  'invalid_labels',
  'invalid_hostname',
  'invalid_silent_since',
  'too_many_roles',
] as const;

export const certificateRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/admin/certificates',
    call: 'listCertificates',
    limit: 'none',
    query: Type.Object({
      status: Type.Optional(
        Type.Enum([...CERTIFICATE_STATUS_FILTERS], {
          description: 'Only those with this status; in_use for active and silent ones',
        }),
      ),
      ...FILTER_QUERY,
      ...PAGE_QUERY,
    }),
    summary: 'Certificates of nodes in every state, by id',
    description:
      'Silent, superseded, expired and revoked certificates are listed until retention removes them.',
    answer: CertificateList,
    refusals: [...PAGE_REFUSALS, 'invalid_certificate_status', ...FILTER_REFUSALS],
    handle(request, edge) {
      const operator = operatorOf(request);
      const page = filteredPage(
        listFilter(request.query),
        (input) => edge.call('listCertificates', { operator, input }),
        (next) => edge.call('readCertificatePage', next),
      );
      return listReply({ member: 'certificates', isCounted: true, page }, request);
    },
  },
  countRoute({
    path: '/admin/contacts',
    call: 'countContacts',
    query: Type.Object({
      group: filter('The key of a label: a bin for each of its values'),
      ...FILTER_QUERY,
    }),
    summary: 'When nodes were last heard from, as counts of certificates in use',
    description:
      'In bins by a label, or by how names, host names and addresses begin, at most 1,000 of each kind.',
    answer: Contacts,
    refusals: FILTER_REFUSALS,
    input({ query }) {
      const group = firstValue(query, 'group');
      if (group !== null && !isLabelKey(group)) return refused('invalid_labels');
      return mapped(certificateFilter(query, 'in_use'), (wanted) => ({ filter: wanted, group }));
    },
  }),
  operatorRoute({
    method: 'GET',
    path: '/admin/certificates/{cert_id}',
    call: 'readCertificate',
    limit: 'none',
    summary: 'One certificate of a node',
    answer: CertificateRow,
    exampleNeeds: NEEDS_CERTIFICATE,
    refusals: ['certificate_not_found'],
    input: (request) => ({ ok: true, value: { certId: request.params.cert_id ?? '' } }),
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/revoke',
    call: 'revokeCertificate',
    limit: 'ADMIN',
    summary: 'Revoke a node certificate, or all of a node key, and publish a new CRL',
    description: 'cert_id names the certificate; without it, node_public_key names the key.',
    body: revokeBody.schema,
    exampleNeeds: NEEDS_CERTIFICATE,
    answer: Revocation,
    refusals: [
      'missing_cert_id',
      'invalid_node_key',
      'invalid_revocation_reason',
      'private_key_given',
      'certificate_not_found',
    ],
    input: (request) =>
      mapped(revokeBody.read(request.body), (body) => ({
        target:
          body.cert_id === undefined
            ? { nodePublicKey: body.node_public_key ?? '' }
            : { certId: body.cert_id },
        reason: body.reason ?? 'unspecified',
      })),
  }),
];

function listFilter(query: Query): Input<CertificateFilter> {
  const status = firstValue(query, 'status');
  const known = CERTIFICATE_STATUS_FILTERS.find((name) => name === status) ?? null;
  return known === status ? certificateFilter(query, known) : refused('invalid_certificate_status');
}

function certificateFilter(
  query: Query,
  status: CertificateFilter['status'],
): Input<CertificateFilter> {
  const expiresBefore = timeIn(query, 'expires_before');
  if (expiresBefore === 'invalid') return refused('invalid_expires_before');
  const key = firstValue(query, 'key');
  if (key !== null && !KEY_BEGINNING.test(key) && !isPublicKey(key))
    return refused('invalid_node_key');
  const described = descriptionFilter(query);
  if (!described.ok) return described;
  const hostname = firstValue(query, 'hostname');
  if (hostname !== null && !isHostName(hostname.replaceAll('*', '-'))) {
    return refused('invalid_hostname');
  }
  const silentSince = timeIn(query, 'silent_since');
  if (silentSince === 'invalid') return refused('invalid_silent_since');
  const roles = valuesOf(query, 'role');
  if (roles.length > MOST_VALUES) return refused('too_many_roles');
  const value = {
    status,
    roles,
    expiresBefore,
    key,
    certId: firstValue(query, 'cert_id'),
    ...described.value,
    hostname,
    health: firstValue(query, 'health'),
    remoteAddr: firstValue(query, 'remote_addr'),
    silentSince,
  };
  return { ok: true, value };
}

/** Milliseconds since the epoch; null if the parameter is absent. */
function timeIn(query: Query, name: string): number | null | 'invalid' {
  const text = firstValue(query, name);
  return text === null ? null : (parseRequestTimestamp(text) ?? 'invalid');
}
