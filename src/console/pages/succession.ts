/**
 * *Succession*: the keys of the authority, who has followed a change of them, and its steps. The root key signs each of
 * these beforehand, elsewhere and offline.
 */
import { counted, shownCount } from '../../base/counts.ts';
import { displayTime } from '../../base/timestamp.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { badge, commandText, emptyState, facts, section } from '../../pages/ui/parts.ts';
import { type Column, table } from '../../pages/ui/table.ts';
import { idText, nameInCell, timeText } from '../../pages/ui/values.ts';
import {
  activateSuccession,
  cancelSuccession,
  finishSuccession,
  rollBackAuthorityKey,
  stageSuccession,
} from '../../protocol/api/authority-keys.ts';
import type { AuthorityKey } from '../../protocol/records/authority-chain.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { readSignedSuccession } from '../../protocol/records/succession-request.ts';
import type {
  Adoption,
  AdoptionTally,
  LaggardRow,
  PartnerAdoption,
} from '../../protocol/rows/adoption.ts';
import type { Context } from '../context.ts';
import { actionForm, actionLink, pastedObject } from '../forms.ts';
import { type Action, definePage, FormProblem, isOffered } from '../page.ts';
import { routeAction } from '../route-action.ts';
import { nodeLink } from './node-rows.ts';

const TONES: Readonly<Record<AuthorityKey['state'], string>> = {
  next: 'warn',
  current: 'ok',
  previous: 'neutral',
  distrusted: 'danger',
  retired: 'neutral',
};

function keysTable(keys: readonly AuthorityKey[]): Html {
  return table({
    id: 'keys',
    caption: 'Oldest first',
    keyOf: ({ public_key }) => public_key,
    rows: keys,
    columns: [
      { head: 'Key', kind: 'id', isHead: true, cell: (key) => idText(key.public_key) },
      {
        head: 'State',
        cell: ({ state }) => badge({ tone: TONES[state], word: state }),
      },
      { head: 'Since', cell: ({ since }) => (since === null ? 'the beginning' : timeText(since)) },
      {
        head: 'Signs until',
        // It may have been retired before.
        cell: ({ state, signs_until: end }) =>
          end === null || state === 'retired' ? '' : timeText(end),
      },
    ],
  });
}

const STATES = {
  staged: 'Staged: published, and not in force yet',
  overlap: 'In force; the previous key also signs',
  finished: 'In force; only the current key signs',
} as const;

function changeFacts(succession: NonNullable<Adoption['succession']>): Html {
  const { sequence, kind, state, activates_at, overlap_until } = succession;
  return facts([
    ['Statement', `${sequence} (${kind})`],
    ['State', STATES[state]],
    ['Takes effect', timeText(activates_at)],
    ...(state === 'finished' ? [] : [['Overlap ends', timeText(overlap_until)] as const]),
  ]);
}

type FollowedState = NonNullable<Adoption['succession']>['state'];
type RoleTally = AdoptionTally & { readonly role: string };

/** Nobody lags behind a key that is not in force yet. */
function tallies(rows: readonly RoleTally[], state: FollowedState): Html {
  const count = (head: string, of: (row: RoleTally) => number): Column<RoleTally> => ({
    head,
    kind: 'number',
    cell: (row) => shownCount(of(row)),
  });
  return table({
    id: 'tallies',
    caption:
      'Certified nodes have a certificate of the new key, informed ones know the statement; both have followed',
    keyOf: ({ role }) => role,
    rows,
    columns: [
      { head: 'Role', isHead: true, kind: 'first', cell: ({ role }) => nameInCell(role) },
      count('Active', ({ active }) => active),
      count('Certified', ({ certified }) => certified),
      count('Informed', ({ informed }) => informed),
      count('Followed', ({ followed }) => followed),
      ...(state === 'staged' ? [] : [count('Laggards', ({ laggards }) => laggards)]),
      count('Silent', ({ silent }) => silent),
    ],
  });
}

function laggardsSection(rows: readonly LaggardRow[], { laggards }: AdoptionTally): Html {
  if (rows.length === 0) return NO_HTML;
  const content = table({
    id: 'laggards',
    caption: `Oldest certificates first: ${rows.length} of ${shownCount(laggards)}`,
    keyOf: ({ cert_id }) => cert_id,
    rows,
    columns: [
      {
        head: 'Node',
        isHead: true,
        kind: 'name first',
        cell: nodeLink,
      },
      { head: 'Roles', cell: ({ roles }) => roles.join(', ') },
      { head: 'Issued', cell: ({ issued_at }) => timeText(issued_at) },
      { head: 'Last contact', cell: ({ last_contact }) => timeText(last_contact) },
      { head: 'Certificate', cell: ({ certified }) => (certified ? 'of the new key' : 'older') },
      {
        head: 'Statement',
        cell: ({ informed }) =>
          informed === null ? 'no heartbeat yet' : informed ? 'known' : 'not known',
      },
    ],
  });
  return section('laggards', 'Laggards', content);
}

function partnersSection(rows: readonly PartnerAdoption[]): Html {
  if (rows.length === 0) return NO_HTML;
  const content = table({
    id: 'partners',
    caption: 'Run mesh-na treaty follow for each',
    keyOf: ({ treaty_id }) => treaty_id,
    rows,
    columns: [
      { head: 'Treaty', kind: 'id', isHead: true, cell: ({ treaty_id }) => idText(treaty_id) },
      { head: 'Subject', kind: 'name', cell: ({ subject_sovereign_id: id }) => nameInCell(id) },
      { head: 'Followed', kind: 'number', cell: ({ followed_sequence }) => followed_sequence },
      { head: 'Known', kind: 'number', cell: ({ known_sequence }) => known_sequence },
      {
        head: 'Stolen key',
        cell: ({ accepts_stolen_key: accepts }) =>
          accepts ? badge({ tone: 'danger', word: 'accepted' }) : '',
      },
    ],
  });
  return section('partners', 'Treaties that have not followed their subject', content);
}

function nextSteps({ succession, nodes }: Adoption, context: Context): Html {
  if (!isOffered(STAGE, context)) return NO_HTML;
  const links = (...actions: readonly Action[]) =>
    html`<div class="actions">${actions.map((action) => actionLink(action, {}))}</div>`;
  if (succession?.state === 'staged') {
    const { activates_at: start } = succession;
    // An authority that lacks the private key is still waiting, and may have it by now.
    const isDue = instantOf(start) <= context.now();
    return section(
      'steps',
      'Next step',
      isDue
        ? links(ACTIVATE, CANCEL)
        : html`<p>The next key takes over by itself at ${timeText(start)}.</p>${links(CANCEL)}`,
    );
  }
  if (succession?.state === 'overlap') {
    // There is no way back after the end of the overlap: it is first only where everybody has followed.
    const hasLaggards = nodes !== null && nodes.laggards > 0;
    return section(
      'steps',
      'Next step',
      hasLaggards ? links(ROLL_BACK, FINISH) : links(FINISH, ROLL_BACK),
    );
  }
  return section(
    'steps',
    'Replace the key',
    html`${STEPS}${actionForm(STAGE, new URLSearchParams())}`,
  );
}

/** All of a succession, because its first steps are taken elsewhere. */
const STEPS = html`<ol class="effects">
<li>On the machine of the authority, create the next key and a request: ${commandText('authority-key prepare --out request.json')}</li>
<li>Where the root key is, offline, read the request and sign it: ${commandText('authority-key sign --request request.json --root-key root.key --out succession.json')}</li>
<li>Stage what was signed: paste it below. Nodes and partners learn of the next key.</li>
<li>Watch here who knows it. It takes over by itself at the time that was signed.</li>
<li>When all nodes have followed, finish: the previous key signs no more. Until then, you can roll back.</li>
</ol>`;

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

const STAGE = routeAction(stageSuccession, {
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

const CANCEL = routeAction(cancelSuccession, {
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

const ACTIVATE = routeAction(activateSuccession, {
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

const ROLL_BACK = routeAction(rollBackAuthorityKey, {
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

const FINISH = routeAction(finishSuccession, {
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

export const SUCCESSION = definePage({
  path: '/succession',
  title: 'Succession',
  async show(context) {
    const [adoption, chain] = await Promise.all([
      context.client.readAdoption(),
      context.publicClient.authorityKeys(),
    ]);
    const { succession, nodes, roles, laggards, partners } = adoption;
    const steps = nextSteps(adoption, context);
    const isUnderWay = succession?.state === 'staged' || succession?.state === 'overlap';
    return {
      body: html`${section('keys', 'Keys of the authority', keysTable(chain?.keys ?? []))}${
        succession === null || nodes === null
          ? emptyState('The key has never been replaced, and no successor is staged.')
          : html`${section('change', 'The last change', changeFacts(succession))}${isUnderWay ? steps : NO_HTML}${section(
              'adoption',
              'Who has followed',
              tallies([{ role: 'all nodes', ...nodes }, ...roles], succession.state),
            )}${succession.state === 'staged' ? NO_HTML : laggardsSection(laggards, nodes)}`
      }${partnersSection(partners)}${isUnderWay ? NO_HTML : steps}`,
    };
  },
  actions: [STAGE, CANCEL, ACTIVATE, ROLL_BACK, FINISH],
});
