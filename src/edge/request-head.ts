import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import type { Peers } from './peers.ts';

export interface RequestHead {
  /** As sent: methods are case-sensitive. */
  readonly method: string;
  /** As sent, percent-encoded, without query. */
  readonly path: string;
  readonly query: string;
  /** Value of a header by its lower-case name; empty when absent. */
  header(name: string): string;
  /** The values of all lines of a header; none when it is absent. */
  headerLines(name: string): readonly string[];
  peerAddress(): string;
}

/**
 * The head of a request, readable until its handler returns. A class, because every request creates one:
 * closures would have to be created each time.
 */
export class UwsRequestHead implements RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #res: HttpResponse;
  readonly #req: HttpRequest;
  readonly #peers: Peers;

  constructor(res: HttpResponse, req: HttpRequest, peers: Peers) {
    this.#res = res;
    this.#req = req;
    this.#peers = peers;
    this.method = req.getCaseSensitiveMethod();
    this.path = req.getUrl();
    this.query = req.getQuery() ?? '';
  }

  header(name: string): string {
    return this.#req.getHeader(name);
  }

  headerLines(name: string): readonly string[] {
    const lines: string[] = [];
    this.#req.forEach((key, value) => {
      if (key === name) lines.push(value);
    });
    return lines;
  }

  peerAddress(): string {
    return this.#peers.only ?? addressOf(this.#res);
  }
}

export function addressOf(res: HttpResponse): string {
  return Buffer.from(res.getRemoteAddressAsText()).toString('latin1');
}
