/** The keys of the authority, and the succession to the next one [authority-keys-9]. */
import Type from 'typebox';
import { AuthorityKeyStep } from '../answers/operators.ts';
import { AuthorityKeys } from '../records/authority-chain.ts';
import { readSignedSuccession, SignedSuccession } from '../records/succession-request.ts';
import { refuse } from '../refusals.ts';
import { LARGE_BODY_BYTES } from '../route-description.ts';
import { privilegedCommand, publicDocument } from './define.ts';
import { optional, readBy } from './members.ts';

export const readAuthorityKeys = publicDocument('GET /authority-keys', {
  summary: 'The keys of the authority, and the statements by which they replaced each other',
  answer: AuthorityKeys,
});

const NEEDS_STAGED = { what: 'a staged succession', otherwise: 'succession_not_staged' } as const;

export const stageSuccession = privilegedCommand('POST /admin/authority-keys', {
  maxBodyBytes: LARGE_BODY_BYTES,
  summary: 'Stage the succession to the next key, as signed by the root key',
  body: readBy(SignedSuccession, ['invalid_succession'], (body) => ({
    succession: readSignedSuccession(body) ?? refuse('invalid_succession'),
  })),
  exampleNeeds: {
    what: 'a succession that the root key has signed',
    otherwise: 'succession_rejected',
  },
  answer: AuthorityKeyStep,
  refusals: ['succession_staged', 'succession_rejected'],
});

export const cancelSuccession = privilegedCommand('POST /admin/authority-keys/cancel', {
  summary: 'Take the staged succession back',
  exampleNeeds: NEEDS_STAGED,
  answer: AuthorityKeyStep,
  refusals: ['succession_not_staged'],
});

export const activateSuccession = privilegedCommand('POST /admin/authority-keys/activate', {
  summary: 'Let the staged key sign from now on, if its time has come',
  exampleNeeds: NEEDS_STAGED,
  answer: AuthorityKeyStep,
  refusals: ['succession_not_staged', 'activation_too_early', 'authority_key_not_held'],
});

export const rollBackAuthorityKey = privilegedCommand('POST /admin/authority-keys/roll-back', {
  summary: 'Return to the key before, within the overlap of a planned succession',
  exampleNeeds: { what: 'a planned succession', otherwise: 'roll_back_impossible' },
  answer: AuthorityKeyStep,
  refusals: ['roll_back_impossible', 'authority_key_not_held'],
});

export const finishSuccession = privilegedCommand('POST /admin/authority-keys/finish', {
  summary: 'Let the previous key sign no more, before its overlap ends',
  body: {
    despite: optional(
      Type.Integer({
        minimum: 0,
        description: 'The exact number of nodes that have not followed, to finish despite them',
      }),
      0,
      null,
      { isLenient: true },
    ),
  },
  exampleNeeds: { what: 'an overlap of two keys', otherwise: 'no_overlap' },
  answer: AuthorityKeyStep,
  refusals: ['no_overlap', 'nodes_have_not_followed'],
});
