/** Lookups whose cost must not grow with the amount of stored data: agents by capability, and the trust path. */
import { performance } from 'node:perf_hooks';
import type { AgentRegistration } from '../machines/agent-registration.ts';
import type { Treaty } from '../machines/recognition-treaty.ts';
import { createAgentIndex } from '../src/authority/agents.ts';
import { connectomeText } from '../src/authority/recognition/recognition-graph.ts';
import {
  createRecognitionIndex,
  type RecognitionIndex,
} from '../src/authority/recognition/recognition-index.ts';
import { explainTrust } from '../src/authority/recognition/trust-explanation.ts';
import { copyGraph } from '../src/authority/recognition/trust-graph.ts';
import { findTrustPath, presentView } from '../src/authority/recognition/trust-path.ts';
import { readGraph } from '../src/pages/graph/document-reading.ts';
import { drawnGraph } from '../src/pages/graph/drawing.ts';
import { graphModel } from '../src/pages/graph/model.ts';
import { publishedDocument } from '../src/protocol/contract/documents.ts';
import type { Settings } from './contest.ts';
import { ownMilliseconds } from './cpu.ts';
import { FEED_ENTRIES, longestSlicesOfImports } from './feed-import.ts';
import type { Load } from './load.ts';
import type { Line, Report } from './report.ts';

const AGENTS = 100_000;
const AGENTS_FOUND = 10;
const SOVEREIGNS = 10_000;
const TREATIES = 50_000;
const EXPLAINED_TREATIES = 10_000;
const EXPLANATIONS = 100;
/** The largest graph that is drawn. */
const DRAWN = { treaties: 1500, sovereigns: 300 };
const READINGS = 10;
const CALLS = 2000;
const NOW = 1_000_000_000_000;
const LATER = NOW + 1_000_000_000;

/** Runs in this process and without HTTP, to measure only the index. */
export async function benchLookups(_load: Load, { progress }: Settings): Promise<Report> {
  progress('lookups: filling the indexes');
  const findAgents = agentLookup();
  const index = filledIndex(TREATIES);
  const many = filledIndex(EXPLAINED_TREATIES);
  const explained = longestSlice(EXPLANATIONS, (call) => explanation(many, endsOf(call)));
  const read = longestReading(many);
  const drawn = longestReading(filledIndex(DRAWN.treaties, DRAWN.sovereigns));
  progress('lookups: importing feeds');
  const imports = await longestSlicesOfImports();
  return {
    benchmark: 'lookups',
    about: `${CALLS} calls each, in process`,
    lines: [
      measure(`${AGENTS_FOUND} of ${AGENTS} agents by capability`, findAgents),
      measure(`trust path, ${SOVEREIGNS} sovereigns, ${TREATIES} treaties`, pathLookup(index)),
    ],
    comparisons: [],
    notes: [
      'each call must stay below 1 ms of CPU',
      `of ${EXPLANATIONS} explanations of trust with ${EXPLAINED_TREATIES} treaties, the longest slice took ${explained.toFixed(1)} ms: it must stay below 10`,
      `of ${READINGS} readings of a graph for pages, the longest slice took ${read.toFixed(1)} ms with ${EXPLAINED_TREATIES} treaties, and ${drawn.toFixed(1)} ms where ${DRAWN.sovereigns} sovereigns are drawn: it must stay below 20`,
      `of imports of ${FEED_ENTRIES} revocations, the longest slice took ${imports.map((ms) => ms.toFixed(1)).join(', ')} ms of CPU: it must stay below 20`,
    ],
  };
}

function agentLookup(): (call: number) => void {
  const index = createAgentIndex();
  for (let i = 0; i < AGENTS; i += 1) {
    const registration: AgentRegistration = {
      json: '{}',
      content: '',
      superseded: [],
      capabilities: [`family:tag-${i % (AGENTS / AGENTS_FOUND)}`],
      registeredAt: NOW + i,
      expiresAt: LATER + i,
      heldUntil: LATER + i,
    };
    index.put(`key-${i}`, {
      version: 1,
      value: 'registered',
      context: registration,
    });
  }
  return (call) => {
    index.takeExpired(NOW);
    const found = index.withCapability(`family:tag-${call % (AGENTS / AGENTS_FOUND)}`);
    if (found.length !== AGENTS_FOUND) throw new Error(`${found.length} agents were found`);
  };
}

/** Every sovereign recognizes the same number of others, chosen by a generator with a fixed seed. */
function filledIndex(treaties: number, sovereigns = SOVEREIGNS): RecognitionIndex {
  const index = createRecognitionIndex();
  const draw = generator(1);
  for (let i = 0; i < treaties; i += 1) {
    const subject = draw() % sovereigns;
    const treaty: Treaty = {
      json: '{}',
      issuer: `sovereign-${i % sovereigns}`,
      subject: `sovereign-${subject}`,
      subjectKeys: [],
      issuedAt: NOW,
      validFrom: '',
      expiresAt: LATER,
      revokedAt: null,
      revocationReason: null,
      followed: [],
    };
    index.putTreaty(`treaty-${i}`, treaty);
  }
  index.endLoading();
  return index;
}

function endsOf(call: number): { readonly from: string; readonly to: string } {
  return {
    from: `sovereign-${(call * 31) % SOVEREIGNS}`,
    to: `sovereign-${(call * 17 + 4242) % SOVEREIGNS}`,
  };
}

function pathLookup(index: RecognitionIndex): (call: number) => void {
  return (call) => {
    const { from, to } = endsOf(call);
    findTrustPath(index, from, to, NOW);
  };
}

/**
 * The most CPU milliseconds for which the work occupies its thread without a pause; the first half of the calls is
 * warm-up.
 */
function longestSlice(calls: number, start: (call: number) => Generator<void, unknown>): number {
  let longest = 0;
  for (let call = 0; call < calls; call += 1) {
    const work = start(call);
    for (let isDone = false; !isDone; ) {
      const started = ownMilliseconds();
      isDone = work.next().done === true;
      if (call >= calls / 2) longest = Math.max(longest, ownMilliseconds() - started);
    }
  }
  return longest;
}

/** Reads the published graph as an edge does for its pages, and draws it if it is small enough. */
function longestReading(index: RecognitionIndex): number {
  const { bytes } = publishedDocument([...connectomeText(index, NOW)].join(''));
  return longestSlice(READINGS, function* (call) {
    // Uses another graph each time, because the layout of the last one is cached.
    const model = yield* graphModel(yield* readGraph(bytes), `sovereign-${call}`);
    yield* drawnGraph({ ...model, links: model.links.slice(call) });
  });
}

function* explanation(
  index: RecognitionIndex,
  { from, to }: ReturnType<typeof endsOf>,
): Generator<void, void> {
  const graph = yield* copyGraph(index);
  if (graph === null) throw new Error('Nobody changes the index');
  yield* explainTrust({
    graph,
    view: presentView(NOW),
    found: findTrustPath(index, from, to, NOW),
    source: index.sovereign(from)?.number ?? null,
    target: index.sovereign(to)?.number ?? null,
  });
}

/** A linear congruential generator (with the constants of Numerical Recipes), without its low bits, which are weak. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
}

function measure(name: string, run: (call: number) => void): Line {
  for (let call = 0; call < CALLS / 4; call += 1) run(call);
  const times: number[] = [];
  const cpu = process.cpuUsage();
  const started = performance.now();
  for (let call = 0; call < CALLS; call += 1) {
    const before = performance.now();
    run(call);
    times.push(performance.now() - before);
  }
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  times.sort((a, b) => a - b);
  const percentile = (share: number) => times[Math.floor(CALLS * share)] ?? null;
  return {
    name,
    requests_per_second: Math.round(CALLS / seconds),
    cpu_us_per_request: Math.round(((user + system) / CALLS) * 10) / 10,
    main_us_per_request: Math.round(((user + system) / CALLS) * 10) / 10,
    server_cpu: Math.round(((user + system) / 1e6 / seconds) * 100) / 100,
    client_cpu: 0,
    p50_ms: percentile(0.5),
    p99_ms: percentile(0.99),
    p999_ms: percentile(0.999),
  };
}
