/** `mesh-na graph`: who recognizes whom. */

import type { Command } from 'commander';
import { counted } from '../../base/counts.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type {
  Candidate,
  EdgeRow,
  RecognitionGraph,
  TrustAnswer,
  TrustExplanation,
} from '../../protocol/rows/graph.ts';
import { resolveId, routeCommand } from '../connection/route-command.ts';
import { ANYONE, publicClient, type Reach } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { documentOf } from '../kernel/deliver.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { timeAgo } from '../kernel/options.ts';
import { type Line, printResult } from '../kernel/output.ts';
import {
  type Column,
  column,
  idColumn,
  type TableOptions,
  tableOf,
  timeColumn,
} from '../kernel/table.ts';

const TRACE = [
  option(
    '--explain',
    'show why, until when, what else was considered, and what the trust depends on',
  ),
  option('--without <treaty>', 'assume that this treaty has ended (repeatable)', { many: true }),
  option('--as-of <time>', 'evaluate at an earlier time, or a duration ago', { parse: timeAgo }),
  WIDE,
] as const;

type TraceOptions = OptionsIn<typeof TRACE> & Reach;

export function addGraphCommands(graph: Command): void {
  routeCommand(graph, 'show', 'readRecognitionGraph', {
    about: 'show which sovereign recognizes which',
    options: [WIDE],
    out: 'the graph',
    examples: ['mesh-na graph show', 'mesh-na graph show --json | jq .revoked_trust_material'],
    record: (answer, _, options) => documentOf(options, 'The graph', graphText(answer, options)),
  });
  define(graph, 'trace', {
    about: 'find the shortest chain of active treaties; exit code 4 when there is none',
    asks: ANYONE,
    args: [
      ['<from>', 'sovereign that would trust'],
      ['<to>', 'sovereign that would be trusted'],
    ],
    options: TRACE,
    examples: [
      'mesh-na graph trace alpha gamma',
      'mesh-na graph trace alpha gamma --explain',
      'mesh-na graph trace alpha gamma --as-of 2026-01-31T12:00:00Z',
    ],
    async run(options, [from = '', to = '']) {
      const answer = await trace(from, to, options);
      printResult(options, answer, trustText(answer, options));
      if (!answer.trusted) throw failure(EXIT.refused, answer.reason, '');
    },
  });
}

function graphText(graph: RecognitionGraph, options: TableOptions): Line[] {
  const { sovereigns, recognition_edges, active_treaties, revoked_trust_material } = graph;
  const none = recognition_edges.length === 0;
  return [
    ...(none
      ? ['No sovereign recognizes another.']
      : tableOf(EDGE_COLUMNS, recognition_edges, options)),
    '',
    `${counted(sovereigns.length, 'sovereign')}, ${counted(active_treaties.length, 'active treaty', 'active treaties')}, ${counted(revoked_trust_material.length, 'revocation')}.`,
  ];
}

async function trace(from: string, to: string, options: TraceOptions): Promise<TrustAnswer> {
  const { explain = false, without: given = [], asOf } = options;
  const client = publicClient(options);
  const isPlain = !explain && given.length === 0 && asOf === undefined;
  if (isPlain) return client.trustPath({ from, to });
  const without: string[] = [];
  for (const treaty of given) without.push(await resolveId(options, 'treaty', treaty));
  return client.askTrust(from, to, { explain, without, as_of: asOf });
}

const EDGE_COLUMNS: readonly Column<EdgeRow>[] = [
  column('FROM', (edge) => edge.from),
  column('TO', (edge) => edge.to),
  column('STATE', (edge) => edge.lifecycle_state, 4),
  column('EXPIRY RISK', (edge) => edge.expiry_risk, 1),
  timeColumn('EXPIRES', (edge) => edge.expires_at, 2),
  idColumn('TREATY', (edge) => edge.treaty_id, 3),
];

function trustText(answer: TrustAnswer, options: TableOptions): Line[] {
  const { path, explanation, graph_digest } = answer;
  return [
    ...sentences(answer),
    ...(path.length === 0 ? [] : ['', ...tableOf(EDGE_COLUMNS, path, options)]),
    ...followedText(path, options),
    ...(explanation ? explanationText(explanation, options) : []),
    ...(graph_digest === undefined ? [] : ['', `Graph digest: ${graph_digest}`]),
  ];
}

/** The keys to which the treaties of the path have followed their subjects, if any has. */
function followedText(path: readonly EdgeRow[], options: TableOptions): Line[] {
  const columns: readonly Column<EdgeRow>[] = [
    column('TO', ({ to }) => to),
    column('FOLLOWED TO THE KEY', ({ followed_key = '' }) => followed_key),
  ];
  const followed = path.filter(({ followed_key }) => followed_key !== undefined);
  return followed.length === 0 ? [] : ['', ...tableOf(columns, followed, options)];
}

function sentences(answer: TrustAnswer): string[] {
  const { from, to, trusted, reason, hop_count, as_of, known_from } = answer;
  const when = as_of ? ` as of ${as_of}` : '';
  const without = answer.without?.length ? ` without ${answer.without.join(', ')}` : '';
  const given = `${when}${without}`;
  if (reason === 'indeterminate') {
    const since = known_from ? `begins at ${known_from}` : 'has no treaty';
    return [`Whether ${from} trusted ${to}${given} is not known: the record ${since}.`];
  }
  if (!trusted) return [`${from} does not trust ${to}${given} (${reason}).`];
  return [`${from} trusts ${to}${given} over ${treaties(hop_count)}.`];
}

function treaties(count: number | bigint): string {
  return counted(Number(count), 'treaty', 'treaties');
}

function explanationText(explanation: TrustExplanation, options: TableOptions): Line[] {
  return [
    ...untilText(explanation),
    ...termsText(explanation, options),
    ...cutText(explanation, options),
    ...candidatesText(explanation, options),
  ];
}

function untilText({ trusted_until, path_until }: TrustExplanation): string[] {
  if (trusted_until === null) return [];
  return [
    '',
    `Trusted until: ${trusted_until}. This path valid until: ${path_until}.`,
    'A treaty counts until one second before it expires.',
  ];
}

function termsText({ terms }: TrustExplanation, options: TableOptions): Line[] {
  if (terms.length === 0) return [];
  const columns: readonly Column<(typeof terms)[number]>[] = [
    idColumn('TREATY', ({ treaty_id }) => treaty_id),
    column('SCOPE', ({ scope }) => (scope === null ? 'see the treaty' : canonicalJson(scope))),
  ];
  return ['', ...tableOf(columns, terms, options)];
}

const NAMED_EDGE: readonly Column<Pick<EdgeRow, 'from' | 'to' | 'treaty_id'>>[] = [
  column('FROM', ({ from }) => from),
  column('TO', ({ to }) => to),
  idColumn('TREATY', ({ treaty_id }) => treaty_id),
];

function cutText({ cut }: TrustExplanation, options: TableOptions): Line[] {
  if (cut.state === 'none') return [];
  if (cut.state === 'indeterminate') {
    return ['', `The trust depends on at least ${treaties(cut.size)}: too many to list.`];
  }
  return [
    '',
    `The trust ends only if ${treaties(cut.size)} end${cut.size === 1 ? 's' : ''}:`,
    ...tableOf(NAMED_EDGE, cut.treaties, options),
  ];
}

/** Describes a treaty that failed each test. */
const FAILED: Readonly<Record<Candidate['failed_test'], (candidate: Candidate) => string>> = {
  left_out: () => 'left out',
  not_issued: ({ valid_from }) => `not yet issued (${valid_from})`,
  revoked: ({ revoked_at, revocation_reason }) => `revoked at ${revoked_at}: ${revocation_reason}`,
  replaced: ({ revoked_at, revocation_reason }) => `ended at ${revoked_at}: ${revocation_reason}`,
  expired: ({ expires_at }) => `expired at ${expires_at}`,
  not_reached: () => 'its issuer is not trusted',
  leads_elsewhere: () => 'leads elsewhere',
  longer: ({ hops }) => `on a longer path: ${hops} treaties`,
  later: () => 'on an equally short path, later in the order',
};

function candidatesText(explanation: TrustExplanation, options: TableOptions): Line[] {
  const { candidates, more_candidates } = explanation;
  if (candidates.length === 0) return ['', 'No other treaty was considered.'];
  const why = column('WHY NOT', (row: Candidate) => FAILED[row.failed_test](row));
  return [
    '',
    'Considered but not used:',
    ...tableOf([...NAMED_EDGE, why], candidates, options),
    ...(more_candidates === 0 ? [] : [`And ${more_candidates} more.`]),
  ];
}
