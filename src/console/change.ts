/** Changes from proposal to account: a plan is shown, confirmed, carried out request by request, and reported. */
import { counted, shownCount } from '../base/counts.ts';
import type { JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { Runtime } from '../base/runtime.ts';
import { createKeptRequests, isLost, type SendKept } from '../client/kept-request.ts';
import { CLOCK_TOLERANCE_MS } from '../client/offline.ts';
import { type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { folded, section } from '../pages/ui/parts.ts';
import { byRequest } from '../protocol/audit-sentence.ts';
import type { Context } from './context.ts';
import { entriesTable, type Happening, type NamedEvent, named, newestFirst } from './entries.ts';
import type { PageAction, Plan, PlannedRequest } from './page.ts';
import { problemLine, type ShellParts } from './shell.ts';

export interface Change {
  readonly id: string;
  readonly action: PageAction;
  readonly form: URLSearchParams;
  readonly plan: Plan;
  /** Where it leads when it is over. */
  readonly back: string;
  state: 'proposed' | 'running' | 'done' | 'failed';
  /** How many requests are dealt with; some are not sent. */
  handled: number;
  /** Those that are left alone, because they no longer apply. */
  readonly skipped: Set<PlannedRequest>;
  answer: JsonObject | null;
  /** Why it failed, in one sentence. */
  problem: string;
  /** The length of the audit log before the first request. */
  logSize: number | null;
  /** When it failed without an answer: it may be sent again while the authority remembers it. */
  unansweredAt: number | null;
  /** Null if they could not be read, such as after the operator's own key was revoked. */
  entries: readonly Happening[] | null;
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
      change.entries = await entriesAfter(change.logSize, change, context).catch(() => null);
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
    if (request === undefined || plan.isDone?.(request, change.answer)) return;
    if (plan.isStillMeant !== undefined && !(await plan.isStillMeant(request))) {
      change.skipped.add(request);
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
        skipped: new Set(),
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
function mayContinue({ state, unansweredAt }: Change, { now }: Pick<Context, 'now'>) {
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

const MOST_SHOWN = 10;

export function proposedPage(change: Change, context: Context, problem: string | null): ShellParts {
  const { plan, back } = change;
  const { sentence, effects } = plan;
  return {
    title: 'Confirm',
    lede: sentence,
    path: pathIn(back),
    body: html`${problem === null ? '' : problemLine(problem)}${section(
      'effects',
      'What it affects',
      html`<ul class="effects">
${effects.map((effect) => html`<li>${effect}</li>`)}</ul>
${plan.touched ?? NO_HTML}`,
    )}<form class="confirm" method="post" action="./confirm">
<input type="hidden" name="id" value="${change.id}">
${typedField(plan.typed)}<p class="actions"><button class="${change.action.isDestructive ? 'danger' : ''}" type="submit">${change.action.label}</button><a href="${back}">Cancel</a></p>
</form>
${folded('What will be signed', signed(change, context))}${folded('The same on the command line', command(change, context))}`,
  };
}

/** The page to which a change returns. */
function pathIn(back: string): string {
  return back.replace(/^\.|\?.*$/g, '');
}

function typedField(typed: string | null): Html {
  if (typed === null) return NO_HTML;
  return html`<p class="field"><label for="number">Type <bdi>${typed}</bdi> to confirm</label><input type="text" id="number" name="number" required autocomplete="off" spellcheck="false"></p>`;
}

/** The members that do not change from one request to the next are those of the wire [core-2-2]. */
function signed({ plan: { requests } }: Change, { audience, keyId }: Context): Html {
  const [first = NO_HTML, ...more] = requests.slice(0, MOST_SHOWN).map(({ path, body }) => {
    const text = canonicalJson({
      v: 2,
      method: 'POST',
      path: decodeURIComponent(path),
      query: {},
      audience,
      body,
      key_id: keyId,
      timestamp: 'when it is signed',
      nonce: 'a new random value',
    });
    return html`<pre class="code" tabindex="0">${indentedJson(text)}</pre>`;
  });
  const left = requests.length - MOST_SHOWN;
  return html`<p>${requests.length === 1 ? 'One request' : counted(requests.length, 'request')}, signed with the key ${keyId}:</p>
${first}${
  more.length === 0
    ? NO_HTML
    : html`<details><summary>The next ${more.length}</summary><div class="listing">
${more}</div></details>`
}${left > 0 ? html`<p class="muted">And ${shownCount(left)} more like these.</p>` : NO_HTML}`;
}

function command({ plan }: Change, { commandLine }: Context): Html {
  return html`<pre class="code" tabindex="0">${commandLine(plan.command)}</pre>`;
}

export function outcomePage(change: Change, context: Context): ShellParts {
  const { plan, state, handled, skipped, back } = change;
  const all = plan.requests.length;
  const progress = all === 1 ? '' : ` ${shownCount(handled)} of ${shownCount(all)} requests.`;
  const left =
    skipped.size === 0
      ? ''
      : ` ${counted(skipped.size, 'request was', 'requests were')} not sent: no longer applicable.`;
  return {
    title: TITLES[state],
    lede: `${plan.sentence}${progress}${left}`,
    path: pathIn(back),
    body: html`${state === 'failed' ? failure(change, context) : ''}${touched(change)}${answer(change)}${ending(change)}${entries(change)}${section('same', 'The same on the command line', command(change, context))}`,
  };
}

/** Which of many things were changed, and which were left alone. */
function touched({ plan: { requests }, handled, skipped }: Change): Html {
  const changed = requests.slice(0, handled).filter((request) => !skipped.has(request));
  const sentence = (what: string, about: readonly PlannedRequest[]) => {
    const names = about.flatMap(({ subject = [] }) => subject);
    return names.length === 0
      ? NO_HTML
      : html`<p>${what} ${shownCount(names.length)}: <bdi>${names.join(', ')}</bdi>.</p>`;
  };
  return html`${sentence('Changed', changed)}${sentence('Left alone', [...skipped])}`;
}

/** A secret is shown until the operator says that it was taken along, whatever else is loaded meanwhile. */
function ending({ id, plan, back, state, answer: given }: Change): Html {
  if (plan.isSecret && given !== null) {
    return html`<form class="confirm" method="post" action="./taken" data-outcome>
<input type="hidden" name="id" value="${id}">
<p>They stay on this page until you confirm that you have stored them, or the console ends.</p>
<p><button type="submit">Stored: do not show them again</button></p>
</form>`;
  }
  const isFailed = state === 'failed';
  return html`<p class="actions" data-outcome><a class="${isFailed ? 'button' : 'button primary'}" href="${back}">${isFailed ? 'Back' : 'Continue'}</a></p>`;
}

const TITLES = { proposed: 'Confirm', running: 'In progress', done: 'Done', failed: 'Not done' };

function failure(change: Change, context: Context): Html {
  if (!mayContinue(change, context)) return problemLine(change.problem);
  return html`${problemLine(change.problem)}<form class="confirm" method="post" action="./confirm">
<input type="hidden" name="id" value="${change.id}">
<p>Nothing is lost: what was sent without an answer is sent again byte for byte, and happens once.</p>
<p><button type="submit">Try again</button></p>
</form>`;
}

function answer(change: Change): Html {
  const { plan, answer: given } = change;
  if (given === null) return html``;
  const shown =
    plan.answer?.(given) ??
    html`<pre class="code" tabindex="0">${indentedJson(canonicalJson(given))}</pre>`;
  return plan.requests.length > 1
    ? folded('The last answer', shown)
    : section('answer', 'Answer', shown);
}

function entries({ entries: all, state }: Change): Html {
  if (state !== 'done') return html``;
  if (all === null || all.length === 0) {
    const why =
      all === null
        ? 'The new entries cannot be read.'
        : 'There is no new entry: nothing had to be changed.';
    return section('audit', 'Audit log', html`<p>${why}</p>`);
  }
  return section(
    'audit',
    'Audit log',
    entriesTable('entries', 'The entries that this change has written', all),
  );
}

/** The JSON on several lines, each value exactly as it is written. */
export function indentedJson(text: string): string {
  let depth = 0;
  let shown = '';
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '}' || token === ']') depth -= 1;
    const isEnd = (token === '}' || token === ']') && !/[{[]$/.test(shown);
    const isStart = /[{[,]$/.test(shown) && token !== '}' && token !== ']';
    if (isEnd || isStart) shown += `\n${'  '.repeat(depth)}`;
    shown += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
  }
  return shown;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/g;
