/** The public documents [core-4-15], most of them signed. */
import Type from 'typebox';
import { SovereignDocument } from '../answers/documents.ts';
import { Bulletin } from '../records/bulletin.ts';
import { GenesisBlock } from '../records/genesis.ts';
import { PolicyManifest } from '../records/policy-manifest.ts';
import { CertificateRevocationList } from '../records/revocation-list.ts';
import { RevocationListDelta } from '../records/revocation-list-delta.ts';
import { publicDocument } from './define.ts';
import { sequence } from './parameters.ts';

export const readGenesis = publicDocument('GET /genesis', {
  hasLastCopy: true,
  summary: 'Active signed genesis block',
  answer: GenesisBlock,
});

export const readSovereign = publicDocument('GET /sovereign.json', {
  usesBaseUrl: true,
  hasLastCopy: true,
  summary: 'Public metadata of the sovereign',
  answer: SovereignDocument,
});

export const readPolicy = publicDocument('GET /policy', {
  hasLastCopy: true,
  summary: 'Active signed policy manifest',
  answer: PolicyManifest,
});

export const readRevocationList = publicDocument('GET /crl', {
  growsWithNetwork: true,
  hasLastCopy: true,
  summary: 'Active signed certificate revocation list, or what it gained since a version',
  query: {
    since: sequence(
      'invalid_since',
      'Only what the list gained since its version of this sequence',
    ),
  },
  answer: Type.Union([CertificateRevocationList, RevocationListDelta]),
  refusals: ['since_ahead', 'delta_unavailable'],
});

export const readBulletin = publicDocument('GET /bulletin', {
  summary: 'What is newest here, signed: revocation list, policy, genesis, audit log',
  answer: Bulletin,
});
