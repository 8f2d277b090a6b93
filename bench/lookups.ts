/** Look-ups whose cost must not grow with what is stored: agents by capability, and the trust path. */
import { performance } from 'node:perf_hooks';
import type { AgentRegistration } from '../machines/agent-registration.ts';
import type { Treaty } from '../machines/recognition-treaty.ts';
import { createAgentIndex } from '../src/authority/enrollment/agent-index.ts';
import { createRecognitionIndex, type RecognitionIndex } from '../src/views/recognition-index.ts';
import { explainTrust } from '../src/views/trust-explanation.ts';
import { copyGraph } from '../src/views/trust-graph.ts';
import { findTrustPath } from '../src/views/trust-path.ts';
import { presentView } from '../src/views/trust-view.ts';
import type { Settings } from './contest.ts';
import type { Load } from './load.ts';
import type { Line, Report } from './report.ts';

const AGENTS = 100_000;
const AGENTS_FOUND = 10;
const SOVEREIGNS = 10_000;
const TREATIES = 50_000;
const EXPLAINED_TREATIES = 10_000;
const EXPLANATIONS = 100;
const CALLS = 2000;
const NOW = 1_000_000_000_000;
const LATER = NOW + 1_000_000_000;

/** In this process and without HTTP: this measures the index alone. */
export async function benchLookups(_load: Load, { progress }: Settings): Promise<Report> {
  progress('lookups: filling the indexes');
  const findAgents = agentLookup();
  const index = filledIndex(TREATIES);
  const explained = longestSlice(filledIndex(EXPLAINED_TREATIES));
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
    ],
  };
}

function agentLookup(): (call: number) => void {
  const index = createAgentIndex();
  for (let i = 0; i < AGENTS; i += 1) {
    const registration: AgentRegistration = {
      json: '{}',
      capabilities: [`family:tag-${i % (AGENTS / AGENTS_FOUND)}`],
      registeredAt: NOW + i,
      expiresAt: LATER + i,
      heldUntil: LATER + i,
    };
    index.follow('agent-registration', `key-${i}`, {
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

/** Every sovereign recognizes as many others, drawn by a generator with a fixed seed. */
function filledIndex(treaties: number): RecognitionIndex {
  const index = createRecognitionIndex();
  const draw = generator(1);
  for (let i = 0; i < treaties; i += 1) {
    const subject = draw() % SOVEREIGNS;
    const treaty: Treaty = {
      json: '{}',
      issuer: `sovereign-${i % SOVEREIGNS}`,
      subject: `sovereign-${subject}`,
      subjectKeys: [],
      issuedAt: NOW,
      validFrom: '',
      expiresAt: LATER,
      revokedAt: null,
      revocationReason: null,
    };
    index.putTreaty(`treaty-${i}`, treaty);
  }
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

/** Milliseconds that an explanation holds the authority at most without a pause; the first ones warm up. */
function longestSlice(index: RecognitionIndex): number {
  let longest = 0;
  for (let call = 0; call < EXPLANATIONS; call += 1) {
    const work = explanation(index, endsOf(call));
    for (let isDone = false; !isDone; ) {
      const started = performance.now();
      isDone = work.next().done === true;
      if (call > EXPLANATIONS / 2) longest = Math.max(longest, performance.now() - started);
    }
  }
  return longest;
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

/**
 * A linear congruential generator (the constants of Numerical Recipes), without its low bits, which are
 * weak.
 */
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
