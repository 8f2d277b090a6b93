/** An answer about trust, and treaties as edges of the graph, for people. */
import { canonicalJson } from '../base/json/write.ts';
import type { Candidate, EdgeRow, TrustAnswer, TrustExplanation } from '../protocol/rows/graph.ts';
import type { Line } from './printable.ts';
import { idColumn, type TableOptions, tableOf, timeColumn } from './table.ts';

const EDGE_COLUMNS = [
  'FROM',
  'TO',
  { title: 'STATE', rank: 4 },
  { title: 'EXPIRY RISK', rank: 1 },
  timeColumn('EXPIRES', 2),
  idColumn('TREATY', 3),
];

export function edgeTable(edges: readonly EdgeRow[], options: TableOptions): Line[] {
  const rows = edges.map((edge) => [
    edge.from,
    edge.to,
    edge.lifecycle_state,
    edge.expiry_risk,
    edge.expires_at,
    edge.treaty_id,
  ]);
  return tableOf(EDGE_COLUMNS, rows, options);
}

export function trustText(answer: TrustAnswer, options: TableOptions): Line[] {
  const { path, explanation, graph_digest } = answer;
  return [
    ...sentences(answer),
    ...(path.length === 0 ? [] : ['', ...edgeTable(path, options)]),
    ...(explanation ? explanationText(explanation, options) : []),
    ...(graph_digest === undefined ? [] : ['', `Graph digest: ${graph_digest}`]),
  ];
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
  return `${count} ${count === 1 ? 'treaty' : 'treaties'}`;
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
  return ['', `Trusted until: ${trusted_until}. Over this path until: ${path_until}.`];
}

function termsText({ terms }: TrustExplanation, options: TableOptions): Line[] {
  if (terms.length === 0) return [];
  const rows = terms.map(({ treaty_id, scope }) => [
    treaty_id,
    scope === null ? 'see the treaty' : canonicalJson(scope),
  ]);
  return ['', ...tableOf([idColumn('TREATY'), 'SCOPE'], rows, options)];
}

function cutText({ cut }: TrustExplanation, options: TableOptions): Line[] {
  if (cut.state === 'none') return [];
  if (cut.state === 'indeterminate') {
    return ['', `The trust rests on at least ${treaties(cut.size)}: too many to name.`];
  }
  const rows = cut.treaties.map(({ from, to, treaty_id }) => [from, to, treaty_id]);
  return [
    '',
    `The trust ends with ${treaties(cut.size)}, and with no fewer:`,
    ...tableOf(['FROM', 'TO', idColumn('TREATY')], rows, options),
  ];
}

/** What is said of a treaty that failed the test. */
const FAILED: Readonly<Record<Candidate['failed_test'], (candidate: Candidate) => string>> = {
  left_out: () => 'left out',
  not_issued: ({ valid_from }) => `not issued before ${valid_from}`,
  revoked: ({ revoked_at, revocation_reason }) => `revoked at ${revoked_at}: ${revocation_reason}`,
  replaced: ({ revoked_at, revocation_reason }) => `ended at ${revoked_at}: ${revocation_reason}`,
  expired: ({ expires_at }) => `expired at ${expires_at}`,
  not_reached: () => 'its issuer is not trusted',
  leads_elsewhere: () => 'leads elsewhere',
  longer: ({ hops }) => `on a longer way: ${hops} treaties`,
  later: () => 'on a way as short, later in order',
};

function candidatesText(explanation: TrustExplanation, options: TableOptions): Line[] {
  const { candidates, more_candidates } = explanation;
  if (candidates.length === 0) return ['', 'No other treaty was considered.'];
  const rows = candidates.map((candidate) => [
    candidate.from,
    candidate.to,
    candidate.treaty_id,
    FAILED[candidate.failed_test](candidate),
  ]);
  return [
    '',
    'Considered, and not counted:',
    ...tableOf(['FROM', 'TO', idColumn('TREATY'), 'WHY NOT'], rows, options),
    ...(more_candidates === 0 ? [] : [`And ${more_candidates} more.`]),
  ];
}
