/** *Operators*: who may sign, with which tier, and what they have done lately. */
import { shownCount } from '../../pages/counts.ts';
import { section } from '../../pages/details-page.ts';
import { html, NO_HTML } from '../../pages/html.ts';
import { type Column, table } from '../../pages/table.ts';
import { idText, timeText } from '../../pages/values.ts';
import { type OperatorKeyRow, TIERS } from '../../protocol/rows/operator-key.ts';
import { type Action, type Field, FormProblem, isOffered } from '../action.ts';
import { stateWith, twoLines } from '../cells.ts';
import type { Context } from '../context.ts';
import { ENTRIES_LOOKED_AT, lastActs } from '../entries.ts';
import { textIn } from '../fields.ts';
import { actionForm, actionLink } from '../form-view.ts';
import { definePage } from '../page.ts';

const KEY_ID: Field = { name: 'key_id', label: 'Key id', kind: 'text', isRequired: true };
const TIER: Field = {
  name: 'tier',
  label: 'Tier',
  kind: 'select',
  choices: TIERS.map((tier) => [tier, tier]),
};
const BACK = './operators';

const REVOKE_KEY: Action = {
  name: 'revoke-operator-key',
  title: 'Revoke an operator key',
  label: 'Revoke',
  tier: 'privileged',
  isDestructive: true,
  fields: [KEY_ID, { name: 'reason', label: 'Reason', kind: 'text' }],
  async plan(context, form) {
    const id = form.get('key_id') ?? '';
    const reason = textIn(form, 'reason');
    const { operator_keys: keys } = await context.client.listOperatorKeys();
    const row = keys.find(({ key_id: each }) => each === id);
    if (row === undefined) throw new FormProblem(`There is no operator key ${id}.`);
    const left = keys.filter(({ key_id: each, status }) => each !== id && status === 'usable');
    const privileged = left.filter(({ tier }) => tier === 'privileged').length;
    if (privileged === 0) {
      throw new FormProblem(`${id} is the last privileged key. Add another one first.`);
    }
    return {
      sentence: `Revoke the operator key ${id}, for good.`,
      requests: [
        {
          path: `/admin/operator-keys/${encodeURIComponent(id)}/revoke`,
          body: { ...(reason !== '' && { reason }), unless_last_privileged: true },
        },
      ],
      effects: [
        'Every request that it signs is refused from then on.',
        `Keys that stay usable: ${left.length}; privileged ones among them: ${privileged}.`,
        ...(id === context.keyId ? ['It is your own key: this console can do nothing more.'] : []),
      ],
      typedNumber: null,
      command: ['operator-key', 'revoke', id, ...(reason === '' ? [] : ['--reason', reason])],
      audited: ['operator_key_revoked'],
      back: BACK,
    };
  },
};

const ADD_KEY: Action = {
  name: 'add-operator-key',
  title: 'Add an operator key',
  label: 'Add',
  tier: 'privileged',
  fields: [
    KEY_ID,
    {
      name: 'public_key',
      label: 'Public key',
      kind: 'id',
      isRequired: true,
      hint: 'From the .pub file of mesh-na operator-key create.',
    },
    TIER,
  ],
  async plan(_context, form) {
    const text = (name: string) => textIn(form, name);
    const [id, key, tier] = [text('key_id'), text('public_key'), tierIn(form)];
    return {
      sentence: `Add the operator key ${id}, with the tier ${tier}.`,
      requests: [{ path: '/admin/operator-keys', body: { key_id: id, public_key: key, tier } }],
      effects: [
        tier === 'privileged'
          ? 'Its owner can do everything that you can, such as revoking nodes and other operators.'
          : 'Its owner can invite and name nodes, and read what operators read.',
        'It works at once, and after every restart.',
      ],
      typedNumber: null,
      command: ['operator-key', 'add', id, '--public-key', key, '--tier', tier],
      audited: ['operator_key_added'],
      back: BACK,
    };
  },
};

const SET_TIER: Action = {
  name: 'set-operator-tier',
  title: 'Change the tier of an operator key',
  label: 'Change the tier',
  tier: 'privileged',
  fields: [KEY_ID, TIER],
  async plan(_context, form) {
    const id = form.get('key_id') ?? '';
    const tier = tierIn(form);
    return {
      sentence: `Give the operator key ${id} the tier ${tier}.`,
      requests: [{ path: `/admin/operator-keys/${encodeURIComponent(id)}/tier`, body: { tier } }],
      effects: [`At once, its owner may do what a ${tier} operator may do.`],
      typedNumber: null,
      command: ['operator-key', 'set-tier', id, tier],
      audited: ['operator_key_tier_set'],
      back: BACK,
    };
  },
};

function tierIn(form: URLSearchParams) {
  const tier = TIERS.find((each) => each === form.get('tier'));
  if (tier === undefined) throw new FormProblem('Choose a tier.');
  return tier;
}

export const OPERATORS = definePage({
  path: '/operators',
  title: 'Operators',
  isInNavigation: true,
  tier: 'standard',
  async load(context) {
    const [list, acts] = await Promise.all([context.client.listOperatorKeys(), lastActs(context)]);
    return { keys: list.operator_keys, acts };
  },
  render({ keys, acts }, context) {
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
          rows: keys,
          columns: columns(acts, context),
        }),
      )}${adding}`,
    };
  },
  actions: [ADD_KEY, SET_TIER, REVOKE_KEY],
});

function columns(acts: ReadonlyMap<string, string>, context: Context): Column<OperatorKeyRow>[] {
  const mayChange = isOffered(REVOKE_KEY, context);
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
    ...(mayChange
      ? [
          {
            head: 'Action',
            cell: ({ key_id, status, tier, source }: OperatorKeyRow) => {
              if (status === 'revoked') return '';
              const other = tier === 'standard' ? 'privileged' : 'standard';
              const change =
                source === 'operator' ? actionLink(SET_TIER, { key_id, tier: other }) : NO_HTML;
              return html`<span class="actions">${actionLink(REVOKE_KEY, { key_id })}${change}</span>`;
            },
          },
        ]
      : []),
  ];
}
