/** The keys of the authority, and the succession to the next one [authority-keys-9]. */
import Type from 'typebox';
import { AuthorityKeyStep } from '../../protocol/answers/operators.ts';
import { AuthorityKeys } from '../../protocol/records/authority-chain.ts';
import {
  readSignedSuccession,
  SignedSuccession,
} from '../../protocol/records/succession-request.ts';
import { LARGE_BODY_BYTES } from '../../protocol/route-description.ts';
import { bodyReader, mapped, refused } from '../body.ts';
import { NOTHING, PUBLIC_DOCUMENT, type RouteEntry } from '../route.ts';
import { serveDocument } from './documents.ts';
import { operatorRoute } from './operator-route.ts';

const finishBody = bodyReader(
  Type.Object({
    despite: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'The exact number of nodes that have not followed, to finish despite them',
      }),
    ),
  }),
  { wholeNumbers: ['despite'] },
);

export const authorityKeyRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_DOCUMENT,
    path: '/authority-keys',
    summary: 'The keys of the authority, and the statements by which they replaced each other',
    answer: AuthorityKeys,
    refusals: [],
    handle: (request, edge) => serveDocument('authority_keys', request, edge),
  },
  operatorRoute({
    method: 'POST',
    path: '/admin/authority-keys',
    call: 'stageSuccession',
    limit: 'ADMIN',
    maxBodyBytes: LARGE_BODY_BYTES,
    summary: 'Stage the succession to the next key, as signed by the root key',
    body: SignedSuccession,
    exampleNeeds: {
      what: 'a succession that the root key has signed',
      otherwise: 'succession_rejected',
    },
    answer: AuthorityKeyStep,
    refusals: ['invalid_succession', 'succession_staged', 'succession_rejected'],
    input({ body }) {
      const succession = readSignedSuccession(body);
      return succession === null
        ? refused('invalid_succession')
        : { ok: true, value: { succession } };
    },
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/authority-keys/cancel',
    call: 'cancelSuccession',
    limit: 'ADMIN',
    summary: 'Take the staged succession back',
    exampleNeeds: { what: 'a staged succession', otherwise: 'succession_not_staged' },
    answer: AuthorityKeyStep,
    refusals: ['succession_not_staged'],
    input: () => NOTHING,
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/authority-keys/activate',
    call: 'activateSuccession',
    limit: 'ADMIN',
    summary: 'Let the staged key sign from now on, if its time has come',
    exampleNeeds: { what: 'a staged succession', otherwise: 'succession_not_staged' },
    answer: AuthorityKeyStep,
    refusals: ['succession_not_staged', 'activation_too_early', 'authority_key_not_held'],
    input: () => NOTHING,
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/authority-keys/roll-back',
    call: 'rollBackAuthorityKey',
    limit: 'ADMIN',
    summary: 'Return to the key before, within the overlap of a planned succession',
    exampleNeeds: { what: 'a planned succession', otherwise: 'roll_back_impossible' },
    answer: AuthorityKeyStep,
    refusals: ['roll_back_impossible', 'authority_key_not_held'],
    input: () => NOTHING,
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/authority-keys/finish',
    call: 'finishSuccession',
    limit: 'ADMIN',
    summary: 'Let the previous key sign no more, before its overlap ends',
    body: finishBody.schema,
    exampleNeeds: { what: 'an overlap of two keys', otherwise: 'no_overlap' },
    answer: AuthorityKeyStep,
    refusals: ['no_overlap', 'nodes_have_not_followed'],
    input: ({ body }) => mapped(finishBody.read(body), ({ despite = 0 }) => ({ despite })),
  }),
];
