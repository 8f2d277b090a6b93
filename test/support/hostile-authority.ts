/** A real HTTP server whose answers a test chooses, like a hostile or broken authority. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline, Readable } from 'node:stream';

/**
 * An object is sent as JSON, a text as it is, a stream as it comes, a response with its status and headers, and null ends
 * the connection. Promises are awaited.
 */
type Answer = object | string | Readable | Response | null;

/** Answers by route, such as `GET /crl`. Answers in a list are given in turn, and the last one from then on. */
export type Answers = { readonly [route: string]: Answer | Answer[] };

export interface Asked {
  readonly route: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface HostileAuthority {
  readonly url: string;
  /** Every request so far. */
  readonly asked: Asked[];
  answers: Answers;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startHostileAuthority(answers: Answers = {}): Promise<HostileAuthority> {
  // On a busy machine, clients would use connections that were closed meanwhile because they were idle.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    const body = (await request.setEncoding('utf8').toArray()).join('');
    const route = `${request.method} ${request.url}`;
    hostile.asked.push({ route, headers: request.headers, body });
    const given = hostile.answers[route];
    const answer = await (Array.isArray(given) && given.length > 1
      ? given.shift()
      : [given].flat()[0]);
    if (answer instanceof Response) {
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      return response.end(await answer.clone().text());
    }
    if (answer === null) return response.destroy();
    if (answer instanceof Readable) return pipeline(answer, response, () => undefined);
    response.statusCode = answer === undefined ? 404 : 200;
    return response.end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? {}));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const hostile: HostileAuthority = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    answers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return hostile;
}
