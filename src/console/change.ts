/** Changes from proposal to account: a plan is shown, confirmed, carried out request by request, and reported. */
import type { JsonObject } from '../base/json/value.ts';
import type { Runtime } from '../base/runtime.ts';
import { createKeptRequests, isLost, type SendKept } from '../client/kept-request.ts';
import { CLOCK_TOLERANCE_MS } from '../client/offline.ts';
import { byRequest } from '../protocol/audit-sentence.ts';
import type { Context } from './context.ts';
import { type Happening, type NamedEvent, named, newestFirst } from './entries.ts';
import type { PageAction, Plan } from './page.ts';

export interface Change {
  readonly id: string;
  readonly action: PageAction;
  readonly form: URLSearchParams;
  readonly plan: Plan;
  /** Where it leads when it is over. */
  readonly back: string;
  state: 'proposed' | 'running' | 'done' | 'failed';
  /** How many requests are dealt with; some are not sent, because they no longer apply. */
  handled: number;
  /** What those were about. */
  readonly skipped: string[];
  answer: JsonObject | null;
  /** Why it failed, in one sentence. */
  problem: string;
  /** The length of the audit log before the first request. */
  logSize: number | null;
  /** When it failed without an answer: it may be sent again while the authority remembers it. */
  unansweredAt: number | null;
  entries: readonly Happening[];
}

const MOST_KEPT = 100;
/** A change that takes longer is shown while it runs. */
const AWAITED_MS = 10_000;
/** Longer than a page waits: a change may have to wait for a disk. */
const TIMEOUT_MS = 30_000;
const RETRIES = 2;
/** An authority that limits requests counts them by the minute. */
const PATIENCE_MS = 600_000;
const MOST_ENTRIES = 20;
const MOST_ENTRIES_READ = 2000;

export type Changes = ReturnType<typeof createChanges>;

export function createChanges(runtime: Runtime) {
  const known = new Map<string, Change>();
  const senders = new WeakMap<Change, SendKept>();

  async function carryOut(change: Change, context: Context): Promise<void> {
    const { plan } = change;
    try {
      change.logSize ??= (await context.publicClient.readBulletin()).log_size;
      for (; change.handled < plan.requests.length; change.handled += 1) {
        await sendNext(change, context);
      }
      change.entries = await entriesAfter(change.logSize, change, context).catch(() => []);
      change.state = 'done';
    } catch (error) {
      change.problem = await context.problemOf(error);
      change.unansweredAt = isLost(error) ? context.now() : null;
      change.state = 'failed';
    }
  }

  async function sendNext(change: Change, context: Context): Promise<void> {
    const { plan, handled } = change;
    const request = plan.requests[handled];
    if (request === undefined) return;
    if (plan.isStillMeant !== undefined && !(await plan.isStillMeant(request))) {
      change.skipped.push(request.subject ?? '');
      return;
    }
    const send = senders.get(change) ?? createKeptRequests({ now: context.now });
    senders.set(change, send);
    change.answer = await send(String(handled), (stamp, call) =>
      context
        .operatorClient({
          ...stamp,
          timeoutMs: TIMEOUT_MS,
          retries: RETRIES,
          patienceMs: plan.requests.length > 1 ? PATIENCE_MS : 0,
        })
        .request({ method: 'POST', path: request.path, body: request.body }, call),
    );
  }

  function forgetOldest(): void {
    for (const [id, { state, plan, answer }] of known) {
      if (known.size < MOST_KEPT) return;
      const isAwaited = plan.isSecret === true && answer !== null;
      if (state !== 'running' && !isAwaited) known.delete(id);
    }
  }

  return {
    async propose(action: PageAction, form: URLSearchParams, context: Context): Promise<Change> {
      const plan = await action.plan(context, form);
      forgetOldest();
      const change: Change = {
        id: runtime.randomBytes(16).toString('hex'),
        action,
        form,
        plan,
        back: plan.back ?? `.${action.page}`,
        state: 'proposed',
        handled: 0,
        skipped: [],
        answer: null,
        problem: '',
        logSize: null,
        unansweredAt: null,
        entries: [],
      };
      known.set(change.id, change);
      return change;
    },
    find: (id: string): Change | null => known.get(id) ?? null,
    /** Carries it out, or continues; resolves when it has ended or after some seconds. */
    async confirm(change: Change, context: Context): Promise<void> {
      if (change.state !== 'proposed' && !mayContinue(change, context)) return;
      change.state = 'running';
      await atMost(AWAITED_MS, carryOut(change, context));
    },
  };
}

/** Whether sending it again gets the answer of the first time, if there was one [core-2-5]. */
export function mayContinue({ state, unansweredAt }: Change, { now }: Pick<Context, 'now'>) {
  return state === 'failed' && unansweredAt !== null && now() - unansweredAt <= CLOCK_TOLERANCE_MS;
}

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

/** What the operator's key has caused since then, of the kinds that the plan names. */
async function entriesAfter(
  index: number,
  { plan }: Change,
  context: Context,
): Promise<Happening[]> {
  const { client, keyId } = context;
  const found: NamedEvent[] = [];
  let read = 0;
  for await (const event of named(client.events({ after: index, follow: false }))) {
    read += 1;
    const { event_type: type, actor_key_id: actor } = event.entry;
    if (actor === keyId && plan.audited.some((name) => name === type)) found.push(event);
    if (read === MOST_ENTRIES_READ) break;
  }
  return newestFirst(context, byRequest(found).slice(0, MOST_ENTRIES));
}
