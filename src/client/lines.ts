/** Reads an answer that goes on: line by line, for as long as something comes. */
import type { TSchema } from 'typebox';
import { AuthorityError } from './authority-error.ts';
import { piecesOf } from './body.ts';
import { begin, type HttpRequest, type Prepared, unanswered } from './http.ts';
import type { CallOptions, ServerOptions } from './options.ts';

/** Authorities send something each 15 s. */
const SILENCE_MS = 45_000;
const LONGEST_LINE = 1024 * 1024;

/** The lines of one answer, without empty ones. Throws an `AuthorityError` when it was not sent to its end. */
export async function* linesOf(
  server: ServerOptions,
  request: Omit<HttpRequest<TSchema>, 'answer' | 'repeatable'>,
  prepared: Prepared,
  { signal, ...call }: CallOptions,
): AsyncGenerator<string, void> {
  const silence = silenceTimer(call.timeoutMs ?? SILENCE_MS);
  const ended = signal === undefined ? silence.signal : AbortSignal.any([silence.signal, signal]);
  try {
    const response = await begin(server, request, prepared, { ...call, signal: ended });
    if (!response.body) throw new TypeError('the fetch that is used gives no body');
    const decoder = new TextDecoder();
    let rest = '';
    silence.restart();
    for await (const piece of piecesOf(response.body, ended)) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > LONGEST_LINE) throw new TypeError('a line is too long');
      for (const line of lines) if (line !== '') yield line;
      silence.restart();
    }
  } catch (error) {
    if (error instanceof AuthorityError) throw error;
    throw unanswered(server, error, signal, silence.signal);
  } finally {
    silence.stop();
  }
}

function silenceTimer(ms: number) {
  const controller = new AbortController();
  const end = () => controller.abort();
  let timer = setTimeout(end, ms);
  return {
    signal: controller.signal,
    restart() {
      clearTimeout(timer);
      timer = setTimeout(end, ms);
    },
    /** What is still being received is dropped. */
    stop() {
      clearTimeout(timer);
      end();
    },
  };
}
