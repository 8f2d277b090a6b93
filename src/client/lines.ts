/** Reads a streamed answer line by line. */
import type { TSchema } from 'typebox';
import { AuthorityError } from './authority-error.ts';
import { piecesOf } from './body.ts';
import { begin, type HttpRequest, type Prepared, unanswered } from './http.ts';
import type { CallOptions, ServerOptions } from './options.ts';

/** Authorities send something every 15 s. */
const SILENCE_MS = 45_000;
const LONGEST_LINE = 1024 * 1024;

/** Yields the lines of one answer, without empty ones. Throws an `AuthorityError` when the answer is cut off. */
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
    if (!response.body) throw new TypeError('the configured fetch returns no body');
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
    /** Drops the rest of the answer. */
    stop() {
      clearTimeout(timer);
      end();
    },
  };
}
