/** `mesh-na graph`: who recognizes whom. */
import type { Command } from 'commander';
import type { RecognitionGraph, TrustAnswer } from '../protocol/rows/graph.ts';
import { EXIT, failure } from './exit-codes.ts';
import { addPublicOptions, collect, type PublicOptions, timeAgo } from './options.ts';
import { printResult } from './output.ts';
import type { Line } from './printable.ts';
import { addOutOption, type RecordOptions, showDocument } from './record-output.ts';
import { publicClient } from './server.ts';
import { addWideOption, type TableOptions } from './table.ts';
import { wholeTreatyId } from './treaty.ts';
import { edgeTable, trustText } from './trust-text.ts';

interface TraceOptions extends PublicOptions, TableOptions {
  readonly explain?: boolean;
  readonly without?: readonly string[];
  readonly asOf?: string;
}

export function addGraphCommands(program: Command): void {
  const graph = program.command('graph').description('read the graph of recognition');
  const show = graph
    .command('show')
    .description('show which sovereign recognizes which')
    .action(runShow);
  addPublicOptions(addWideOption(addOutOption(show, 'the graph')), [
    'mesh-na graph show',
    'mesh-na graph show --json | jq .revoked_trust_material',
  ]);
  defineTrace(graph.command('trace'));
}

function defineTrace(trace: Command): void {
  trace
    .description('find the shortest chain of active treaties; exit code 4 when there is none')
    .argument('<from>', 'sovereign that would trust')
    .argument('<to>', 'sovereign that would be trusted')
    .option('--explain', 'why, until when, what else was considered, and what the trust rests on')
    .option('--without <treaty>', 'as if this treaty had ended (repeatable)', collect)
    .option('--as-of <time>', 'how it was at an earlier time, or so long ago', timeAgo)
    .action(runTrace);
  addPublicOptions(addWideOption(trace), [
    'mesh-na graph trace alpha gamma',
    'mesh-na graph trace alpha gamma --explain',
    'mesh-na graph trace alpha gamma --as-of 2026-01-31T12:00:00Z',
  ]);
}

async function runShow(options: PublicOptions & RecordOptions & TableOptions): Promise<void> {
  const graph = await publicClient(options).recognitionGraph();
  showDocument(options, graph, 'The graph', graphText(graph, options));
}

function graphText(graph: RecognitionGraph, options: TableOptions): Line[] {
  const { sovereigns, recognition_edges, active_treaties, revoked_trust_material } = graph;
  const none = recognition_edges.length === 0;
  return [
    ...(none ? ['No sovereign recognizes another.'] : edgeTable(recognition_edges, options)),
    '',
    `Sovereigns: ${sovereigns.length}. Active treaties: ${active_treaties.length}. Revoked: ${revoked_trust_material.length}.`,
  ];
}

async function runTrace(from: string, to: string, options: TraceOptions): Promise<void> {
  const answer = await trace(from, to, options);
  printResult(options, answer, trustText(answer, options));
  if (!answer.trusted) throw failure(EXIT.refused, answer.reason, '');
}

async function trace(from: string, to: string, options: TraceOptions): Promise<TrustAnswer> {
  const { explain = false, without: given = [], asOf } = options;
  const client = publicClient(options);
  const isPlain = !explain && given.length === 0 && asOf === undefined;
  if (isPlain) return client.trustPath(from, to);
  const without: string[] = [];
  for (const treaty of given) without.push(await wholeTreatyId(client, treaty));
  return client.askTrust(from, to, {
    explain,
    without,
    ...(asOf !== undefined && { as_of: asOf }),
  });
}
