/** *Operators*: who may sign, with which tier, and what they have done lately. */
import { counted, shownCount } from '../../base/counts.ts';
import { html, NO_HTML } from '../../pages/ui/html.ts';
import { section } from '../../pages/ui/parts.ts';
import { type Column, table } from '../../pages/ui/table.ts';
import { idText, timeText } from '../../pages/ui/values.ts';
import {
  addOperatorKey,
  revokeOperatorKey,
  setOperatorKeyTier,
} from '../../protocol/api/operator-keys.ts';
import type { OperatorKeyRow } from '../../protocol/rows/operator-key.ts';
import type { Context } from '../context.ts';
import { ENTRIES_LOOKED_AT, lastActs } from '../entries.ts';
import { type AskedField, actionColumn, actionForm, actionLink } from '../forms.ts';
import { stateWith, twoLines } from '../list-page.ts';
import { definePage, FormProblem, isOffered } from '../page.ts';
import { routeAction } from '../route-action.ts';

const KEY_ID: AskedField = { label: 'Key id' };
const REVOKE_KEY = routeAction(revokeOperatorKey, {
  name: 'revoke-operator-key',
  title: 'Revoke an operator key',
  label: 'Revoke',
  isDestructive: true,
  fields: { key_id: KEY_ID, reason: { label: 'Reason' } },
  command: 'operator-key revoke {key_id} --reason {reason}',
  audited: ['operator_key_revoked'],
  async explain({ key_id: id, reason }, { client, keyId }) {
    const { operator_keys: keys } = await client.listOperatorKeys();
    const row = keys.find(({ key_id: each }) => each === id);
    if (row === undefined) throw new FormProblem(`There is no operator key ${id}.`);
    const left = keys.filter(({ key_id: each, status }) => each !== id && status === 'usable');
    const privileged = left.filter(({ tier }) => tier === 'privileged').length;
    if (privileged === 0) {
      throw new FormProblem(`${id} is the last privileged key. Add another one first.`);
    }
    return {
      sentence: `Revoke the operator key ${id}, for good.`,
      bodies: [{ ...(reason && { reason }), unless_last_privileged: true }],
      effects: [
        'Every request that it signs is refused from then on.',
        `${counted(left.length, 'key stays', 'keys stay')} usable, ${privileged} of them privileged.`,
        ...(id === keyId ? ['It is your own key: this console can do nothing more.'] : []),
      ],
    };
  },
});

const ADD_KEY = routeAction(addOperatorKey, {
  name: 'add-operator-key',
  title: 'Add an operator key',
  label: 'Add',
  fields: {
    key_id: KEY_ID,
    public_key: {
      label: 'Public key',
      kind: 'id',
      hint: 'From the .pub file of mesh-na operator-key create.',
    },
    tier: { label: 'Tier' },
  },
  command: 'operator-key add {key_id} --public-key {public_key} --tier {tier}',
  audited: ['operator_key_added'],
  explain: ({ key_id: id, tier }) => ({
    sentence: `Add the operator key ${id}, with the tier ${tier}.`,
    effects: [
      tier === 'privileged'
        ? 'Its owner can do everything that you can, such as revoking nodes and other operators.'
        : 'Its owner can invite and name nodes, and read what operators read.',
      'It works at once, and after every restart.',
    ],
  }),
});

const SET_TIER = routeAction(setOperatorKeyTier, {
  name: 'set-operator-tier',
  title: 'Change the tier of an operator key',
  label: 'Change the tier',
  fields: { key_id: KEY_ID, tier: { label: 'Tier' } },
  command: 'operator-key set-tier {key_id} {tier}',
  audited: ['operator_key_tier_set'],
  explain: ({ key_id: id, tier }) => ({
    sentence: `Give the operator key ${id} the tier ${tier}.`,
    effects: [`At once, its owner may do what a ${tier} operator may do.`],
  }),
});

export const OPERATORS = definePage({
  path: '/operators',
  title: 'Operators',
  async show(context) {
    const [{ operator_keys: rows }, acts] = await Promise.all([
      context.client.listOperatorKeys(),
      lastActs(context),
    ]);
    const adding = isOffered(ADD_KEY, context)
      ? section('add', 'New operator key', actionForm(ADD_KEY, new URLSearchParams()))
      : NO_HTML;
    return {
      body: html`${section(
        'keys',
        'Keys',
        table({
          id: 'operators',
          caption: `Last changes are among the last ${shownCount(ENTRIES_LOOKED_AT)} entries of the audit log`,
          keyOf: ({ key_id: id }) => id,
          rows,
          columns: columns(acts, context),
        }),
      )}${adding}`,
    };
  },
  actions: [ADD_KEY, SET_TIER, REVOKE_KEY],
});

function columns(acts: ReadonlyMap<string, string>, context: Context): Column<OperatorKeyRow>[] {
  return [
    {
      head: 'Key',
      cell: ({ key_id: id }) => twoLines(id, id === context.keyId ? 'you sign with it' : ''),
      isHead: true,
      kind: 'name first',
    },
    { head: 'Tier', cell: ({ tier }) => tier },
    {
      head: 'Status',
      kind: 'state',
      cell: ({ status, revoked_at: at, reason }) =>
        stateWith(
          status === 'usable' ? 'ok' : 'danger',
          status,
          at === null ? '' : html`${timeText(at)} ${reason ?? ''}`,
        ),
    },
    {
      head: 'Last change',
      cell: ({ key_id: id }) => {
        const at = acts.get(id);
        return at === undefined ? '' : timeText(at);
      },
    },
    { head: 'Added by', cell: ({ added_by: by, source }) => by ?? source },
    {
      head: 'Public key',
      cell: ({ public_key: key }) => (key === null ? '' : idText(key)),
      kind: 'id',
    },
    ...actionColumn(REVOKE_KEY, context, ({ key_id, status, tier, source }: OperatorKeyRow) => {
      if (status === 'revoked') return '';
      const other = tier === 'standard' ? 'privileged' : 'standard';
      const change =
        source === 'operator' ? actionLink(SET_TIER, { key_id, tier: other }) : NO_HTML;
      return html`<span class="actions">${actionLink(REVOKE_KEY, { key_id })}${change}</span>`;
    }),
  ];
}
