/** One run at a fixed rate: signs, sends, counts, and asks the service what it cost. */
import { systemRuntime } from '../../src/base/runtime.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { type Address, errorCode, openConnection, textIn } from './connection.ts';
import { drive, type Sent } from './drive.ts';
import { type Fleet, type StoredNode, signingNode } from './fleet-folder.ts';
import { type Latencies, newLatencies } from './latency.ts';
import { evidenceAbout, issuerNamed, KINDS, type Mix, mixText, verificationBody } from './mix.ts';
import type { Place, Site } from './requests.ts';
import { generatorLimit, type RunReport } from './run-report.ts';
import { readMetrics, type ServiceMetrics, serviceUse } from './service-metrics.ts';
import { openSessions } from './sessions.ts';
import { type LoadNode, type SignedRequest, startSigningThreads } from './signing-threads.ts';

export interface RunPlan {
  readonly url: string;
  readonly place: Place;
  readonly fleet: Fleet;
  readonly mix: Mix;
  readonly bulletins: boolean;
  /** Whether nodes make their heartbeats in sessions. */
  readonly sessions: boolean;
  readonly rate: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly connections: number;
  readonly patienceMs: number;
  readonly signingThreads: number;
  readonly stopped: AbortSignal;
  /** Called before the end, however it ends: nodes whose old certificates are of no use any more. */
  renewed(nodes: readonly StoredNode[]): void;
}

/** A node's signing times must differ, and may not run ahead of the clock. */
export const HIGHEST_RATE_OF_A_NODE = 500;

/** Beyond this share of the p99, the generator's own lateness distorts the result. */
const DISTORTING_SHARE = 0.1;
/** Less lateness than this is the resolution of the event loop. */
const LEAST_LATE_MS = 1;
const BUSY_SHARE = 0.9;

/** Null if it was stopped. */
export async function measure(plan: RunPlan): Promise<RunReport | null> {
  const { place, fleet, mix, bulletins, rate, seconds, warmUpSeconds, patienceMs } = plan;
  const { target, site } = place;
  const issuer = issuerNamed('load');
  const evidence = verificationBody(issuer, evidenceAbout(issuer, 'load'));
  const { validity_hours: validityHours } = fleet.network;
  const failure = new AbortController();
  const nodes = plan.sessions ? await withSessions(plan) : fleet.nodes;
  const signing = startSigningThreads(
    { nodes, options: { mix, bulletins, evidence, validityHours }, site },
    { threads: plan.signingThreads, rate },
    (cause) => failure.abort(cause),
  );
  const counts = countsOf(plan);
  try {
    await signing.ready;
    const service = readings(target, site);
    const connect = () => openConnection(target);
    const connections = await Promise.all(Array.from({ length: plan.connections }, connect));
    const underWay = new Map<number, SignedRequest>();
    const startedAt = formatInstant(systemRuntime.now());
    // Requests that are due during the warm-up have these first numbers.
    const warmUp = Math.ceil(warmUpSeconds * rate);
    const isCounted = ({ index }: Sent) => index >= warmUp;
    const from = systemRuntime.elapsed() + warmUpSeconds * 1000;
    const until = from + seconds * 1000;
    const effort = await drive(
      { seconds: warmUpSeconds + seconds, rate, patienceMs },
      {
        connections,
        next(index) {
          const request = signing.take();
          if (request === null) return null;
          underWay.set(index, request);
          if (index === warmUp) service.begin();
          return request.bytes;
        },
        answered(sent, status, body, now) {
          const request = underWay.get(sent.index);
          underWay.delete(sent.index);
          const kind = KINDS[request?.kind ?? 0];
          const isAccepted = status >= 200 && status < 300;
          if (kind === 'renew' && isAccepted) counts.renewed(request, body);
          // By the time of the answer: a service that is too slow still answers requests of the warm-up.
          if (isAccepted && now >= from && now < until) counts.reached();
          if (isCounted(sent)) counts.answered(sent, { status, body, now, kind, isAccepted });
        },
        unsent(dueAt, now) {
          if (dueAt >= from) counts.unsent(now - dueAt);
        },
        lost(sent, cause, now) {
          underWay.delete(sent.index);
          if (isCounted(sent)) counts.lost(sent, cause, now);
        },
        replace: connect,
        stopped: AbortSignal.any([plan.stopped, failure.signal]),
      },
    );
    const use = await service.end();
    failure.signal.throwIfAborted();
    if (plan.stopped.aborted) return null;
    return counts.report({
      startedAt,
      signingLimit: signing.limit(),
      sendingLimit: effort.sendingLimit,
      service: use,
    });
  } finally {
    const renewals = counts.renewals();
    if (renewals.length > 0) plan.renewed(renewals);
    await signing.close();
  }
}

async function withSessions({ fleet, place, connections }: RunPlan): Promise<LoadNode[]> {
  const sessions = await openSessions(fleet.nodes.map(signingNode), place, connections);
  return fleet.nodes.flatMap((node, index) => {
    const session = sessions[index];
    return session === undefined ? [] : [{ ...node, session }];
  });
}

/** Reads the metrics when the warm-up ends and when the run ends. */
function readings(target: Address, site: Site) {
  const read = () => readMetrics(target, site).catch(() => null);
  let before: Promise<ServiceMetrics | null> = Promise.resolve(null);
  return {
    begin(): void {
      before = read();
    },
    async end(): Promise<RunReport['service']> {
      const first = await before;
      const last = first === null ? null : await read();
      return first === null || last === null ? null : serviceUse(first, last);
    },
  };
}

interface Answer {
  readonly status: number;
  readonly body: Buffer;
  readonly now: number;
  readonly kind: string | undefined;
  readonly isAccepted: boolean;
}

interface Facts {
  readonly startedAt: string;
  readonly signingLimit: number;
  readonly sendingLimit: number | null;
  readonly service: RunReport['service'];
}

function countsOf(plan: RunPlan) {
  const all = newLatencies();
  const late = newLatencies();
  const kinds = new Map<string, Latencies>();
  const errors: { [code: string]: number } = {};
  const counts = { accepted: 0, inTime: 0, limited: 0, overloaded: 0, unsent: 0, due: 0 };
  const renewals = new Map<string, StoredNode>();

  function accept({ dueAt }: Sent, { now, kind = '' }: Answer): void {
    counts.accepted += 1;
    all.record(now - dueAt);
    const ofKind = kinds.get(kind) ?? newLatencies();
    kinds.set(kind, ofKind);
    ofKind.record(now - dueAt);
  }

  function addError(code: string): void {
    errors[code] = (errors[code] ?? 0) + 1;
  }

  return {
    reached(): void {
      counts.inTime += 1;
    },
    answered(sent: Sent, answer: Answer): void {
      counts.due += 1;
      late.record(sent.lateMs);
      const { status, body, isAccepted } = answer;
      if (isAccepted) accept(sent, answer);
      else if (status === 429) counts.limited += 1;
      else if (status === 503) counts.overloaded += 1;
      else addError(errorCode(status, body));
    },
    unsent(waitedMs: number): void {
      counts.due += 1;
      counts.unsent += 1;
      all.record(waitedMs);
    },
    lost({ dueAt, lateMs }: Sent, cause: string, now: number): void {
      counts.due += 1;
      late.record(lateMs);
      addError(cause);
      all.record(Math.max(now - dueAt, cause === 'timeout' ? plan.patienceMs : 0));
    },
    renewed(request: SignedRequest | undefined, body: Buffer): void {
      const certId = textIn(body, 'cert_id');
      const node = certId === null ? null : request?.renewed(certId);
      if (node) renewals.set(node.cert_id, node);
    },
    renewals: () => [...renewals.values()],
    report(facts: Facts): RunReport {
      const reached = counts.inTime / plan.seconds;
      const limits = { signing_limit: facts.signingLimit, sending_limit: facts.sendingLimit };
      const lateP99 = late.at('p99');
      const isLate = lateP99 > Math.max(LEAST_LATE_MS, DISTORTING_SHARE * all.at('p99'));
      return {
        kind: 'mesh-na-load-run',
        version: 1,
        started_at: facts.startedAt,
        url: plan.url,
        network_name: plan.fleet.network.network_name,
        mix: mixText(plan.mix),
        nodes: plan.fleet.nodes.length,
        connections: plan.connections,
        bulletins: plan.bulletins,
        sessions: plan.sessions,
        seconds: plan.seconds,
        rate_asked: plan.rate,
        rate_reached: reached,
        due: counts.due,
        accepted: counts.accepted,
        answered_429: counts.limited,
        answered_503: counts.overloaded,
        unsent: counts.unsent,
        errors,
        latency_ms: all.summary(),
        kinds: Object.fromEntries(
          [...kinds].map(([kind, of]) => [
            kind,
            { accepted: of.count(), p50_ms: of.at('p50'), p99_ms: of.at('p99') },
          ]),
        ),
        generator: {
          signing_threads: plan.signingThreads,
          ...limits,
          late_p99_ms: lateP99,
          was_at_limit: isLate || reached > BUSY_SHARE * generatorLimit(limits),
        },
        service: facts.service,
        histogram: all.encoded(),
      };
    },
  };
}
