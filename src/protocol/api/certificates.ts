/**
 * Nodes as operators name them [core-4-21], and their certificates, which they read, count and revoke [core-4-8],
 * [core-4-17], [core-4-23].
 */
import Type from 'typebox';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { CertificateList, DescribedNode, Revocation } from '../answers/operators.ts';
import { REVOCATION_REASONS } from '../records/revocation-list.ts';
import { CERTIFICATE_STATUS_FILTERS, CertificateRow, Contacts } from '../rows/certificate.ts';
import {
  ChangedName,
  isHostName,
  isLabel,
  isLabelKey,
  isNodeName,
  LabelChanges,
} from '../rows/node-description.ts';
import { operatorCommand, operatorList, operatorQuery, privilegedCommand } from './define.ts';
import { Filled, optional, PublicKey } from './members.ts';
import { choice, instant, text, texts } from './parameters.ts';

export const describeNode = operatorCommand('POST /admin/nodes/{node_public_key}', {
  summary: 'Set the name and labels of a node',
  description:
    'Only operators see them. They belong to the node key, so they survive renewals and further joins.',
  body: {
    name: optional(ChangedName, null, 'invalid_name'),
    labels: optional(LabelChanges, null, 'invalid_labels'),
  },
  exampleNeeds: { what: 'the key of a node of this network', otherwise: 'node_not_found' },
  answer: DescribedNode,
  refusals: ['node_not_found', 'too_many_labels'],
});

/** Filters of lists by what operators call nodes. */
export const descriptionParameters = {
  name: texts(
    'Only those of nodes with this name, or any of these; * stands for any text',
    'invalid_name',
    isNodeName,
  ),
  label: texts(
    'Only those of nodes with this label, or all of these: a key, or key=value',
    'invalid_labels',
    isLabel,
  ),
};

const NEEDS_CERTIFICATE = {
  what: 'a certificate of this network',
  otherwise: 'certificate_not_found',
} as const;

/** Too short for a whole key. */
const KEY_BEGINNING = /^[A-Za-z0-9+/]{8,43}$/;

/** The filters that do not concern the status. */
const filters = {
  expires_before: instant('invalid_expires_before', 'Only those that expire before this time'),
  key: text(
    'Only those of this node key, or of keys that begin with at least 8 characters',
    'invalid_node_key',
    (given) => KEY_BEGINNING.test(given) || isPublicKey(given),
  ),
  cert_id: text('Only those whose id begins with this'),
  ...descriptionParameters,
  hostname: text(
    'Only those of nodes that reported this host name; * stands for any text',
    'invalid_hostname',
    (given) => isHostName(given.replaceAll('*', '-')),
  ),
  health: text(
    'Only those with this node_status; well for all that are healthy, unwell for the others',
  ),
  remote_addr: text('Only those whose last contact came from an address that begins with this'),
  silent_since: instant(
    'invalid_silent_since',
    'Only those in use whose nodes did not report since this time',
  ),
  role: texts('Only those with this role, or any of these', 'too_many_roles', () => true),
};

export const listCertificates = operatorList('GET /admin/certificates', {
  list: { member: 'certificates', isCounted: true },
  summary: 'Certificates of nodes in every state, by id',
  description:
    'Silent, superseded, expired and revoked certificates are listed until retention removes them.',
  query: {
    status: choice(
      CERTIFICATE_STATUS_FILTERS,
      'invalid_certificate_status',
      'Only those with this status; in_use for active and silent ones',
    ),
    ...filters,
  },
  answer: CertificateList,
});

export const countContacts = operatorQuery('GET /admin/contacts', {
  summary: 'When nodes were last heard from, as counts of certificates in use',
  description:
    'In bins by a label, or by how names, host names and addresses begin, at most 1,000 of each kind.',
  query: {
    group: text('The key of a label: a bin for each of its values', 'invalid_labels', isLabelKey),
    ...filters,
  },
  answer: Contacts,
  refusals: ['rate_limit_exceeded'],
});

export const readCertificate = operatorQuery('GET /admin/certificates/{cert_id}', {
  summary: 'One certificate of a node',
  exampleNeeds: NEEDS_CERTIFICATE,
  answer: CertificateRow,
  refusals: ['certificate_not_found'],
});

export const revokeCertificate = privilegedCommand('POST /admin/revoke', {
  summary: 'Revoke a node certificate, or all of a node key, and publish a new CRL',
  description: 'cert_id names the certificate; without it, node_public_key names the key.',
  body: {
    cert_id: optional(Filled, null, 'missing_cert_id', {
      before: [
        {
          refusal: 'missing_cert_id',
          passes: (body) => body.cert_id !== undefined || body.node_public_key !== undefined,
        },
      ],
    }),
    node_public_key: optional(PublicKey, null, 'invalid_node_key'),
    reason: optional(
      Type.Enum([...REVOCATION_REASONS]),
      'unspecified',
      'invalid_revocation_reason',
    ),
  },
  exampleNeeds: NEEDS_CERTIFICATE,
  answer: Revocation,
  refusals: ['private_key_given', 'certificate_not_found'],
});
