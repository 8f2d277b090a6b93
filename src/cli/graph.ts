/** `mesh-na graph`: who recognizes whom. */
import type { Command } from 'commander';
import type { EdgeRow, RecognitionGraph, TrustPath } from '../views/rows/graph.ts';
import { defineRenamed, showDefault } from './earlier-name.ts';
import { EXIT, failure } from './exit-codes.ts';
import { addPublicOptions, type PublicOptions } from './options.ts';
import { alignedTable, printResult } from './output.ts';
import { addOutOption, type RecordOptions, showDocument } from './record-output.ts';
import { publicClient } from './server.ts';

export function addGraphCommands(program: Command): void {
  const graph = program.command('graph').description('read the graph of recognition');
  const show = graph
    .command('show', { isDefault: true })
    .description('show which sovereign recognizes which')
    .action(runShow);
  addPublicOptions(addOutOption(show, 'the graph'), [
    'mesh-na graph show',
    'mesh-na graph show --json | jq .revoked_trust_material',
  ]);
  showDefault(graph, show);
  defineRenamed(graph.command('trace'), { parent: program, name: 'trust-path' }, defineTrace);
}

function defineTrace(trace: Command): void {
  trace
    .description('find the shortest chain of active treaties; exit code 4 when there is none')
    .argument('<from>', 'sovereign that would trust')
    .argument('<to>', 'sovereign that would be trusted')
    .action(runTrace);
  addPublicOptions(trace, ['mesh-na graph trace alpha gamma']);
}

async function runShow(options: PublicOptions & RecordOptions): Promise<void> {
  const graph = await publicClient(options).recognitionGraph();
  showDocument(options, graph, 'The graph', graphText(graph));
}

function graphText(graph: RecognitionGraph): string[] {
  const { sovereigns, recognition_edges, active_treaties, revoked_trust_material } = graph;
  const none = recognition_edges.length === 0;
  return [
    ...(none ? ['No sovereign recognizes another.'] : edgeTable(recognition_edges)),
    '',
    `Sovereigns: ${sovereigns.length}. Active treaties: ${active_treaties.length}. Revoked: ${revoked_trust_material.length}.`,
  ];
}

async function runTrace(from: string, to: string, options: PublicOptions): Promise<void> {
  const answer = await publicClient(options).trustPath(from, to);
  printResult(options, answer, trustPathText(answer));
  if (!answer.trusted) throw failure(EXIT.refused, answer.reason, '');
}

function trustPathText({ from, to, trusted, reason, path, hop_count }: TrustPath): string[] {
  const sentence = trusted
    ? `${from} trusts ${to} over ${hop_count} ${hop_count === 1 ? 'treaty' : 'treaties'}.`
    : `${from} does not trust ${to} (${reason}).`;
  return path.length === 0 ? [sentence] : [sentence, '', ...edgeTable(path)];
}

function edgeTable(edges: readonly EdgeRow[]): string[] {
  const rows = edges.map((edge) => [
    edge.from,
    edge.to,
    edge.lifecycle_state,
    edge.expiry_risk,
    edge.expires_at,
    edge.treaty_id,
  ]);
  return alignedTable([['FROM', 'TO', 'STATE', 'EXPIRY RISK', 'EXPIRES', 'TREATY'], ...rows]);
}
