/** `mesh-na authority-key status`: the keys of the authority, and which nodes and treaties have followed a change. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { fromNow } from '../../base/duration.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { AuthorityKey } from '../../protocol/records/authority-chain.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type {
  Adoption,
  AdoptionState,
  AdoptionTally,
  LaggardRow,
  PartnerAdoption,
} from '../../protocol/rows/adoption.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { publicClient } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { asJson, type Line, printResult } from '../kernel/output.ts';
import { column, idColumn, type TableOptions, tableOf, timeColumn } from '../kernel/table.ts';
import { descriptionColumns } from '../nodes/descriptions.ts';
import { stopSignal } from '../service/stop-request.ts';

const STATUS = [
  option('--watch', 'show it again whenever it changes, until a signal'),
  WIDE,
] as const;

type StatusOptions = OptionsIn<typeof STATUS> & OperatorOptions;

const EVERY_MS = 5000;

export function addStatusCommand(authorityKey: Command): void {
  define(authorityKey, 'status', {
    about: 'show the keys of the authority, and which nodes and treaties have followed a change',
    asks: OPERATOR,
    options: STATUS,
    examples: ['mesh-na authority-key status', 'mesh-na authority-key status --watch'],
    run,
  });
}

async function run(options: StatusOptions): Promise<void> {
  if (options.watch !== true) {
    show(options, await read(options));
    return;
  }
  const stop = stopSignal();
  let shown = '';
  while (!stop.aborted) {
    const status = await read(options);
    const { as_of: _, ...changing } = status.adoption;
    const text = JSON.stringify([status.keys, changing]);
    if (text !== shown) show(options, status);
    shown = text;
    await sleep(EVERY_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

type Status = Awaited<ReturnType<typeof read>>;

async function read(options: StatusOptions) {
  const adoption = await operatorClient(options).readAdoption();
  return { keys: await publicClient(options).readAuthorityKeys(), adoption };
}

function show(options: StatusOptions, { keys, adoption }: Status): void {
  const result = { keys: keys.keys, adoption };
  printResult(options, asJson(result), [
    ...keysTable(keys.keys, options),
    '',
    ...adoptionText(adoption, options),
    ...partnersText(adoption.partners, options),
    ...(options.watch === true ? [''] : []),
  ]);
}

function keysTable(keys: readonly AuthorityKey[], options: TableOptions): Line[] {
  return tableOf(
    [
      idColumn('KEY', ({ public_key }) => public_key),
      column('STATE', ({ state }) => state),
      timeColumn('SINCE', ({ since }) => since),
      timeColumn('SIGNS UNTIL', ({ signs_until }) => signs_until),
    ],
    keys,
    options,
  );
}

function adoptionText(adoption: Adoption, options: TableOptions): Line[] {
  const { succession, nodes, known_from, roles, laggards } = adoption;
  if (succession === null || nodes === null) return ['The key was never replaced.'];
  return [
    ...sentences(succession, nodes),
    ...(known_from === null
      ? []
      : [
          `Nodes that have not reported since the authority started count as laggards until ${inTime(known_from)}.`,
        ]),
    '',
    ...tableOf(
      [
        column('ROLE', ({ role }) => role),
        column('ACTIVE', ({ active }) => active),
        column('CERTIFIED', ({ certified }) => certified, 2),
        column('INFORMED', ({ informed }) => informed, 3),
        column('FOLLOWED', ({ followed }) => followed),
        column('LAGGARDS', ({ laggards: behind }) => behind),
        column('SILENT', ({ silent }) => silent, 1),
      ],
      [{ role: 'all nodes', ...nodes }, ...roles],
      options,
    ),
    ...laggardsText(laggards, { state: succession.state, all: nodes.laggards }, options),
  ];
}

function sentences(
  { sequence, kind, state, activates_at, overlap_until }: NonNullable<Adoption['succession']>,
  { active, followed, silent }: AdoptionTally,
): string[] {
  const counts = `${followed} of ${active} active nodes have followed, and ${silent} are silent.`;
  if (state === 'staged') {
    return [`Statement ${sequence} (${kind}) takes effect ${inTime(activates_at)}.`, counts];
  }
  const since = `Statement ${sequence} (${kind}) took effect ${inTime(activates_at)}`;
  return state === 'overlap'
    ? [`${since}; the previous key signs, too, until ${inTime(overlap_until)}.`, counts]
    : [`${since}; only the current key signs.`, counts];
}

function inTime(time: string): string {
  return `${time} (${fromNow(instantOf(time) - systemRuntime.now())})`;
}

function laggardsText(
  laggards: readonly LaggardRow[],
  { state, all }: { readonly state: AdoptionState; readonly all: number },
  options: TableOptions,
): Line[] {
  if (laggards.length === 0) return [];
  const most = laggards.length < all ? ` (${laggards.length} of ${all})` : '';
  return [
    '',
    `Laggards, those with the oldest certificates first${most}:`,
    ...tableOf(
      [
        idColumn('CERTIFICATE', ({ cert_id }) => cert_id),
        ...descriptionColumns<LaggardRow>((row) => row),
        idColumn('NODE KEY', ({ node_public_key }) => node_public_key, 1),
        column('ROLES', ({ roles }) => roles.join(','), 2),
        timeColumn('ISSUED', ({ issued_at }) => issued_at),
        timeColumn('LAST CONTACT', ({ last_contact }) => last_contact, 3),
        column('LACKS', (row: LaggardRow) => lacksOf(row, state)),
      ],
      laggards,
      options,
    ),
  ];
}

/** A staged key has not signed any certificates yet. */
function lacksOf({ certified, informed }: LaggardRow, state: AdoptionState): string {
  const knowledge = informed === null ? ['a heartbeat'] : informed ? [] : ['the statement'];
  const hasCertificate = certified || state === 'staged';
  return [...(hasCertificate ? [] : ['a certificate']), ...knowledge].join(', ');
}

function partnersText(partners: readonly PartnerAdoption[], options: TableOptions): Line[] {
  if (partners.length === 0) return [];
  return [
    '',
    'Treaties that have not followed their subject; run mesh-na treaty follow --partner for each subject:',
    ...tableOf(
      [
        idColumn('TREATY', ({ treaty_id }) => treaty_id),
        column('SUBJECT', ({ subject_sovereign_id }) => subject_sovereign_id),
        column('FOLLOWED', ({ followed_sequence }) => followed_sequence),
        column('KNOWN', ({ known_sequence }) => known_sequence),
        column('STOLEN KEY', ({ accepts_stolen_key }) => (accepts_stolen_key ? 'accepted' : '')),
      ],
      partners,
      options,
    ),
  ];
}
