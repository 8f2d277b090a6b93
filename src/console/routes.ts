/**
 * The routes of a browser that was admitted: pages, in the order and the groups of the navigation, streams, and the
 * steps of a change.
 */
import type { IncomingMessage } from 'node:http';
import type { Runtime } from '../base/runtime.ts';
import { type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { type Change, createChanges, outcomePage, proposedPage } from './change.ts';
import { type Connection, type Context, contextSource } from './context.ts';
import { actionForm, textIn } from './forms.ts';
import {
  FormProblem,
  isOffered,
  type Page,
  type PageAction,
  type PageGroup,
  type Stream,
} from './page.ts';
import { ATTESTATIONS } from './pages/attestations.ts';
import { AUDIT } from './pages/audit.ts';
import { CONTACTS } from './pages/contacts.ts';
import { FEEDS } from './pages/feeds.ts';
import { HEALTH } from './pages/health.ts';
import { HORIZON } from './pages/horizon.ts';
import { INVITES } from './pages/invites.ts';
import { NODE } from './pages/node.ts';
import { NODES } from './pages/nodes.ts';
import { OPERATORS } from './pages/operators.ts';
import { OVERVIEW } from './pages/overview.ts';
import { POLICY } from './pages/policy.ts';
import { SUCCESSION } from './pages/succession.ts';
import { TREATIES } from './pages/treaties.ts';
import { consolePage, EVERY_EVENT, problemLine, type ShellParts, type Theme } from './shell.ts';

export interface Asked {
  readonly request: IncomingMessage;
  /** Below the root of the console. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Aborted when the browser has gone. */
  readonly signal: AbortSignal;
}

/** While a change is in progress, its page is loaded again this often, in seconds. */
const REFRESH_SECONDS = '2';

export function createRooms(
  connection: Connection,
  isReadOnly: boolean,
  runtime: Runtime,
): (asked: Asked) => Promise<Reply> {
  const contextNow = contextSource(connection, isReadOnly, runtime.now);
  const changes = createChanges(runtime);
  let theme: Theme | null = null;

  function shown(
    status: number,
    parts: ShellParts,
    context: Context,
    asked: Asked,
    headers = {},
  ): Reply {
    const look = { theme, here: addressOf(asked) };
    return page(status, consolePage(parts, GROUPS, context, look), headers);
  }

  async function showPage(found: Page, context: Context, asked: Asked): Promise<Reply> {
    const { title, path } = found;
    try {
      const content = await found.show(context, asked.query);
      return shown(200, { title, path, news: EVERY_EVENT, ...content }, context, asked);
    } catch (error) {
      const again = html`<p class="actions"><a class="button" href="${addressOf(asked)}">Try again</a></p>`;
      return shown(...(await failed(error, { title, path }, context, again)), context, asked);
    }
  }

  async function startStream(
    found: Stream,
    path: string,
    context: Context,
    asked: Asked,
  ): Promise<Reply> {
    const { type, title, fileName } = found;
    const pieces = found.pieces(context, asked.query, asked.signal)[Symbol.asyncIterator]();
    try {
      const first = await pieces.next();
      const disposition = fileName !== undefined && {
        'content-disposition': `attachment; filename="${fileName}"`,
      };
      const rest = continued(first, pieces);
      const body = title === undefined ? rest : framedBy({ title, path }, rest, context, asked);
      return { status: 200, type, body, headers: { ...disposition } };
    } catch (error) {
      const of = { title: 'Not available', path: '' };
      return shown(...(await failed(error, of, context)), context, asked);
    }
  }

  async function* framedBy(
    parts: Omit<ShellParts, 'body'>,
    pieces: AsyncIterable<string>,
    context: Context,
    asked: Asked,
  ): AsyncGenerator<string, void> {
    const look = { theme, here: addressOf(asked) };
    const frame = consolePage({ ...parts, body: BODY }, GROUPS, context, look);
    const [before = '', after = ''] = frame.split(BODY.text);
    yield before;
    yield* pieces;
    yield after;
  }

  /** The form; when it is sent, what would be signed. */
  async function askFor(action: PageAction, context: Context, asked: Asked): Promise<Reply> {
    if (!isOffered(action, context)) {
      return shown(403, refused('This key cannot do that here.'), context, asked);
    }
    const { request, query } = asked;
    if (request.method === 'GET') {
      return shown(200, await formPage(action, query, null, context), context, asked);
    }
    const form = await formIn(request);
    if (form === null) return plain(413, 'The form is too large, or is not a form.');
    try {
      const change = await changes.propose(action, form, context);
      return seeOther(addressOf(pageOf(change, asked)));
    } catch (error) {
      const problem = await problemIn(error, context);
      return shown(422, await formPage(action, form, problem, context), context, asked);
    }
  }

  async function confirm(context: Context, asked: Asked): Promise<Reply> {
    const form = await formIn(asked.request);
    const change = changes.find(form?.get('id') ?? '');
    if (form === null || change === null) {
      return shown(404, refused('This change is no longer known: begin again.'), context, asked);
    }
    const { typed } = change.plan;
    const given = textIn(form, 'number');
    const isTyped = typed === null || given === typed || given.replace(/[\s,]/g, '') === typed;
    if (change.state === 'proposed' && !isTyped) {
      const problem = `Not confirmed: type ${typed}. Nothing was signed.`;
      return shown(422, proposedPage(change, context, problem), context, pageOf(change, asked));
    }
    await changes.confirm(change, context);
    return seeOther(addressOf(pageOf(change, asked)));
  }

  /** The operator has stored the secrets of an answer. */
  async function take({ request }: Asked): Promise<Reply> {
    const change = changes.find((await formIn(request))?.get('id') ?? '');
    if (change?.plan.isSecret) change.answer = null;
    return seeOther(change?.back ?? './');
  }

  function outcome(context: Context, asked: Asked): Reply {
    const change = changes.find(asked.query.get('id') ?? '');
    if (change === null) {
      return shown(404, refused('This change is no longer known.'), context, asked);
    }
    if (change.state === 'proposed') {
      return shown(200, proposedPage(change, context, null), context, asked);
    }
    const refresh = change.state === 'running' ? { refresh: REFRESH_SECONDS } : {};
    return shown(200, outcomePage(change, context), context, asked, refresh);
  }

  async function chooseTheme({ request }: Asked): Promise<Reply> {
    const form = await formIn(request);
    theme = form?.get('theme') === 'dark' ? 'dark' : 'light';
    const back = form?.get('back') ?? '';
    return seeOther(/^\.\/[\w.-]*(\?[\x21-\x7e]*)?$/.test(back) ? back : './');
  }

  return async (asked) => {
    const { request, path, query } = asked;
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRead && request.method !== 'POST') return plain(405, 'Only GET, HEAD and POST.');
    if (path === '/') return seeOther('./overview');
    if (path === '/theme' && !isRead) return chooseTheme(asked);
    const repeated = [...query.keys()].find((name) => query.getAll(name).length > 1);
    if (repeated !== undefined) return plain(400, `The address has ${repeated} twice.`);
    const context = await contextNow();
    if (path === '/do') {
      const action = ACTIONS.get(query.get('action') ?? '');
      if (action !== undefined) return askFor(action, context, asked);
    }
    if (path === '/confirm' && !isRead) return confirm(context, asked);
    if (path === '/taken' && !isRead) return take(asked);
    if (path === '/outcome' && isRead) return outcome(context, asked);
    const found = PAGES.find((each) => each.path === path);
    if (found !== undefined && isRead) return showPage(found, context, asked);
    for (const { path: own, streams = [] } of isRead ? PAGES : []) {
      const stream = streams.find((each) => each.path === path);
      if (stream !== undefined) return startStream(stream, own, context, asked);
    }
    return shown(404, refused('There is nothing at this address.'), context, asked);
  };
}

/** Stands for the body of a page that is sent while it is read. */
const BODY = html`<!-- body -->`;

/** Each change has an address of its own, from its proposal to its outcome, so that loading it again loses nothing. */
function pageOf({ id }: Change, asked: Asked): Asked {
  return { ...asked, path: '/outcome', query: new URLSearchParams({ id }) };
}

/** Relative to any page of the console. */
function addressOf({ path, query }: Asked): string {
  return query.size === 0 ? `.${path}` : `.${path}?${query}`;
}

async function problemIn(error: unknown, context: Context): Promise<string> {
  return error instanceof FormProblem ? error.message : context.problemOf(error);
}

/** The status and the page, or what would have been one, with what went wrong in one line. */
async function failed(
  error: unknown,
  parts: Omit<ShellParts, 'body'>,
  context: Context,
  cure: Html = NO_HTML,
): Promise<[status: number, ShellParts]> {
  const status = error instanceof FormProblem ? 422 : 502;
  const body = html`${problemLine(await problemIn(error, context))}${cure}`;
  return [status, { ...parts, body }];
}

async function formPage(
  action: PageAction,
  values: URLSearchParams,
  problem: string | null,
  context: Context,
): Promise<ShellParts> {
  const heading = await action.heading?.(context, values).catch(() => action.title);
  return {
    title: action.title,
    ...(heading !== undefined && { heading }),
    path: action.page,
    body: html`${problem === null ? '' : problemLine(problem)}${actionForm(action, values, true)}`,
  };
}

function refused(problem: string): ShellParts {
  return { title: 'Not available', path: '', body: problemLine(problem) };
}

async function* continued(
  first: IteratorResult<string>,
  pieces: AsyncIterator<string>,
): AsyncGenerator<string, void> {
  try {
    for (let next = first; !next.done; next = await pieces.next()) yield next.value;
  } finally {
    await pieces.return?.();
  }
}

const GROUPS: readonly PageGroup[] = [
  { name: 'State', pages: [OVERVIEW, HEALTH, HORIZON] },
  { name: 'Fleet', pages: [NODES, NODE, CONTACTS, INVITES] },
  { name: 'Partners', pages: [TREATIES, ATTESTATIONS, FEEDS] },
  { name: 'Authority', pages: [POLICY, OPERATORS, SUCCESSION] },
  { name: 'Log', pages: [AUDIT] },
];

export const PAGES: readonly Page[] = GROUPS.flatMap(({ pages }) => pages);

export const ACTIONS: ReadonlyMap<string, PageAction> = new Map(
  PAGES.flatMap(({ path, actions = [] }) =>
    actions.map((action) => [action.name, { ...action, page: path }]),
  ),
);

/** Without a body that is a stream, `body` is the whole answer. */
export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string | AsyncIterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Larger than the largest record that an operator pastes. */
const MOST_BODY_BYTES = 8 * 1024 * 1024;
const FORM = 'application/x-www-form-urlencoded';

export function page(status: number, text: string, headers = {}): Reply {
  return { status, type: 'text/html; charset=utf-8', body: text, headers };
}

export function plain(status: number, text: string): Reply {
  return { status, type: 'text/plain; charset=utf-8', body: `${text}\n` };
}

/** The browser reads the next page with GET, so that loading it again repeats nothing. */
export function seeOther(location: string, headers = {}): Reply {
  return { ...plain(303, 'See the other page'), headers: { location, ...headers } };
}

/** The fields of a form; null if there is none, or it is too large. */
export async function formIn(request: IncomingMessage): Promise<URLSearchParams | null> {
  if (request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() !== FORM) return null;
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MOST_BODY_BYTES) return null;
    pieces.push(piece);
  }
  return new URLSearchParams(Buffer.concat(pieces).toString('utf8'));
}
