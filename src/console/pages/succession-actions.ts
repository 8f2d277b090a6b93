/** The steps of a succession of the authority key. The root key signs it beforehand, elsewhere and offline. */

import { counted, shownCount } from '../../base/counts.ts';
import { displayTime } from '../../base/timestamp.ts';
import {
  activateSuccession,
  cancelSuccession,
  finishSuccession,
  rollBackAuthorityKey,
  stageSuccession,
} from '../../protocol/api/authority-keys.ts';
import { readSignedSuccession } from '../../protocol/records/succession-request.ts';
import type { Adoption } from '../../protocol/rows/adoption.ts';
import type { Context } from '../context.ts';
import { pastedObject } from '../forms.ts';
import { FormProblem } from '../page.ts';
import { routeAction } from '../route-action.ts';

type Succession = NonNullable<Adoption['succession']>;
type NodeCounts = NonNullable<Adoption['nodes']>;

/** What is under way; throws if nothing is in a state in which the step makes sense. */
async function underWay(
  { client }: Context,
  state: Succession['state'],
  otherwise: string,
): Promise<{ readonly succession: Succession; readonly nodes: NodeCounts }> {
  const { succession, nodes } = await client.readAdoption();
  if (succession === null || nodes === null || succession.state !== state) {
    throw new FormProblem(otherwise);
  }
  return { succession, nodes };
}

export const STAGE = routeAction(stageSuccession, {
  name: 'stage-succession',
  title: 'Stage a succession',
  label: 'Stage',
  fields: {},
  further: {
    succession: {
      label: 'Signed succession',
      kind: 'pasted',
      isRequired: true,
      hint: 'The contents of the file that mesh-na authority-key sign wrote.',
    },
  },
  command: 'authority-key stage succession.json',
  audited: ['authority_succession_staged'],
  explain(_, __, form) {
    const pasted = pastedObject(form, 'succession', 'Signed succession');
    const succession = readSignedSuccession(pasted);
    if (succession === null) {
      throw new FormProblem(
        pasted.format === 'mesh-na-succession-request'
          ? 'This is the request, which the root key has not signed yet: run mesh-na authority-key sign.'
          : 'This is not a signed succession: paste the file that mesh-na authority-key sign has written.',
      );
    }
    const { to_key, kind, activates_at, overlap_until } = succession.statement;
    return {
      sentence: `Publish that the key ${to_key} takes over at ${displayTime(activates_at)} (${kind}).`,
      bodies: [pasted],
      effects: [
        `From ${displayTime(activates_at)} on, the key ${to_key} signs everything.`,
        kind === 'planned'
          ? `The previous key also signs until ${displayTime(overlap_until)}, so nobody has to hurry.`
          : 'The previous key counts as stolen: it signs nothing after that, and nodes renew at once.',
        'Until it takes over, it can be canceled.',
      ],
    };
  },
});

export const CANCEL = routeAction(cancelSuccession, {
  name: 'cancel-succession',
  title: 'Cancel the staged succession',
  label: 'Cancel succession',
  fields: {},
  command: 'authority-key cancel',
  audited: ['authority_succession_canceled'],
  async explain(_, context) {
    const { succession } = await underWay(context, 'staged', 'No succession is staged.');
    return {
      sentence: `Take back that the key ${succession.to_key} takes over.`,
      effects: [
        'Nothing else changes. The same statement can be staged again while its time is to come.',
      ],
    };
  },
});

export const ACTIVATE = routeAction(activateSuccession, {
  name: 'activate-succession',
  title: 'Activate the staged key',
  label: 'Activate',
  fields: {},
  command: 'authority-key activate',
  audited: ['authority_key_activated'],
  async explain(_, context) {
    const { succession, nodes } = await underWay(context, 'staged', 'No succession is staged.');
    return {
      sentence: `Activate the key ${succession.to_key} now.`,
      effects: [
        `The authority refuses this before ${displayTime(succession.activates_at)}.`,
        'Genesis, policy, revocation list, feed and bulletin are issued again with the new key.',
        nodes.active === 0
          ? 'No node is active.'
          : `Of ${shownCount(nodes.active)} active nodes, ${shownCount(nodes.informed)} know of it.`,
      ],
    };
  },
});

export const ROLL_BACK = routeAction(rollBackAuthorityKey, {
  name: 'roll-back-key',
  title: 'Return to the previous key',
  label: 'Roll back',
  fields: {},
  command: 'authority-key roll-back',
  audited: ['authority_key_rolled_back'],
  async explain(_, context) {
    const { succession, nodes } = await underWay(
      context,
      'overlap',
      'There is no overlap, and only during one can the authority return to the previous key.',
    );
    return {
      sentence: 'Return to the previous key, by the statement that the root key signed beforehand.',
      effects: [
        'Everything is issued again with the previous key. Sequence numbers go on.',
        `The key ${succession.to_key} also signs until ${displayTime(succession.overlap_until)}, and can never take over again.`,
        `${counted(nodes.certified, 'node holds', 'nodes hold')} a certificate of it until the next renewal.`,
      ],
    };
  },
});

export const FINISH = routeAction(finishSuccession, {
  name: 'finish-succession',
  title: 'End the overlap',
  label: 'Finish',
  isDestructive: true,
  fields: {},
  command: 'authority-key finish --despite {despite}',
  audited: ['authority_key_retired'],
  async explain(_, context) {
    const { succession, nodes } = await underWay(context, 'overlap', 'There is no overlap to end.');
    const { laggards, silent } = nodes;
    return {
      sentence: `End the overlap now, before ${displayTime(succession.overlap_until)}: only the key ${succession.to_key} signs.`,
      bodies: [laggards === 0 ? {} : { despite: laggards }],
      effects: [
        'The previous private key is destroyed, and there is no way back.',
        laggards === 0
          ? nodes.active === 0
            ? 'No node is active.'
            : 'Every active node has followed.'
          : `${counted(laggards, 'active node has', 'active nodes have')} not followed, and nothing new is accepted there until then.`,
        `${counted(silent, 'silent node follows', 'silent nodes follow')} on return.`,
      ],
      typed: laggards === 0 ? null : String(laggards),
    };
  },
});
