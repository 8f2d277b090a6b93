/** `mesh-na console` against a real authority, in the process of the test. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { systemRuntime } from '../../src/base/runtime.ts';
import { httpFetch } from '../../src/cli/connection/server.ts';
import { checkRemote } from '../../src/cli/doctor/remote.ts';
import { problemSentence } from '../../src/cli/operators/console.ts';
import { createOperatorClient } from '../../src/client/operator-client.ts';
import { createPublicClient } from '../../src/client/public-client.ts';
import { type RunningConsole, startConsole } from '../../src/console/server.ts';
import type { TestAuthority, TestOperator } from './authority.ts';
import type { TestBrowser } from './browser.ts';
import { asKey } from './signing.ts';

export interface ConsoleOptions {
  readonly operator?: TestOperator;
  readonly isReadOnly?: boolean;
  /** Replaces the authority's own address. */
  readonly url?: string;
  readonly timeoutMs?: number;
  readonly retries?: number;
  readonly now?: () => number;
}

export interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

export interface TestConsole extends RunningConsole {
  readonly origin: string;
  /** A request with any headers; without a cookie unless one is given. */
  ask(
    method: string,
    path: string,
    headers?: Record<string, string>,
    body?: string,
  ): Promise<Answer>;
  /** Exchanges the token for a cookie, and returns it and the root of all pages. */
  open(): Promise<{ readonly cookie: string; readonly root: string }>;
  /** Requests a page below the root, as the browser with the cookie does. */
  page(path: string): Promise<Answer>;
  /** Submits a form as this browser does, and follows the answer to its page. */
  submit(path: string, fields: Readonly<Record<string, string>>): Promise<Answer>;
  /** Proposes a change, and confirms it, which must succeed; returns what both pages say. */
  change(
    action: string,
    fields?: Readonly<Record<string, string>>,
    number?: string,
  ): Promise<{ readonly proposed: string; readonly done: string }>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The authority, which may run in another process. */
export type ConsoleTarget = Pick<TestAuthority, 'url' | 'audience' | 'privileged'> & {
  readonly clock: Pick<TestAuthority['clock'], 'now'>;
};

export async function startTestConsole(
  na: ConsoleTarget,
  options: ConsoleOptions = {},
): Promise<TestConsole> {
  const { operator = na.privileged, url = na.url, isReadOnly = false, ...rest } = options;
  const { now = na.clock.now, ...server } = rest;
  const { keyId } = operator;
  const reach = { url, fetch: httpFetch(undefined), retries: 0, ...server };
  const addressee = { url, audience: na.audience, publicClient: createPublicClient(reach) };
  const running = await startConsole({
    connection: {
      ...addressee,
      keyId,
      checks: () =>
        checkRemote({ url, fetch: reach.fetch, ca: null, genesis: null, version: 'test', now }),
      operatorClient: (changed) =>
        createOperatorClient({
          ...reach,
          keyId,
          audience: na.audience,
          key: asKey(operator.key),
          now,
          ...changed,
        }),
      problemOf: (error) => problemSentence(error, addressee),
      commandLine: (words) => ['mesh-na', ...words].join(' '),
    },
    isReadOnly,
    port: 0,
    runtime: { ...systemRuntime, now },
  });
  const { port, url: address } = running;
  const origin = `http://127.0.0.1:${port}`;
  let session: { readonly cookie: string; readonly root: string } | null = null;

  function ask(method: string, path: string, headers = {}, body = ''): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false });
      sent.on('error', reject);
      sent.on('response', (answer) => {
        const pieces: Buffer[] = [];
        answer.on('error', reject);
        answer.on('data', (piece: Buffer) => pieces.push(piece));
        answer.on('end', () => {
          const text = Buffer.concat(pieces).toString('utf8');
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
        });
      });
      sent.end(body);
    });
  }

  const form = { origin, 'content-type': 'application/x-www-form-urlencoded' };

  async function opened() {
    if (session !== null) return session;
    const token = new URL(address).hash.slice(1);
    const answer = await ask('POST', '/session', form, `token=${token}`);
    const [cookie = ''] = String(answer.headers['set-cookie']).split(';');
    const root = String(answer.headers.location).replace(/[^/]*$/, '');
    session = { cookie, root };
    return session;
  }

  async function page(path: string): Promise<Answer> {
    const { cookie, root } = await opened();
    return ask('GET', root + path, { cookie });
  }

  async function submit(path: string, fields: Readonly<Record<string, string>>): Promise<Answer> {
    const { cookie, root } = await opened();
    const body = new URLSearchParams(fields).toString();
    const answer = await ask('POST', root + path, { ...form, cookie }, body);
    const { location } = answer.headers;
    return location === undefined ? answer : page(String(location).replace(/^\.\//, ''));
  }

  return {
    ...running,
    origin,
    ask,
    page,
    open: opened,
    submit,
    async change(action, fields = {}, number = '') {
      const proposed = await submit(`do?action=${action}`, fields);
      assert.equal(proposed.status, 200, proposed.text);
      const done = await submit('confirm', { id: changeIn(proposed), number });
      assert.match(done.text, /<title>Done/);
      return { proposed: proposed.text, done: done.text };
    },
    [Symbol.asyncDispose]: running.stop,
  };
}

/** The console in a browser of its own, at its first page. */
export async function visitConsole(
  visit: TestBrowser['visit'],
  na: ConsoleTarget,
  options?: ConsoleOptions,
) {
  const console = await startTestConsole(na, options);
  const seen = await visit(console.url, { isApart: true });
  const { page } = seen;
  await page.waitForURL(/\/overview$/);
  return {
    ...seen,
    console,
    /** Opens another page of it. */
    open: (path: string) => page.goto(new URL(`.${path}`, page.url()).href),
    async [Symbol.asyncDispose]() {
      await seen[Symbol.asyncDispose]();
      await console[Symbol.asyncDispose]();
    },
  };
}

/** The id of the change that a page proposes. */
export function changeIn({ text }: Answer): string {
  return /name="id" value="([0-9a-f]{32})"/.exec(text)?.[1] ?? '';
}
