/**
 * The bodies of answers. They end when the signal is aborted, whatever becomes of the signal that `fetch` was given. That of
 * Node.js 20.20 no longer follows it once garbage was collected while the body is read, if `redirect` is set to
 * `error`, as it is here; with other `redirect` modes it does (nodejs/undici#4627).
 */
import type { AnswerBody, FetchAnswer } from './options.ts';

/** As long as a text of JavaScript may be: anyone who sends more has no end. */
const MOST_BYTES = 512 * 1024 * 1024;

/** Rejects with the reason of the signal when it is aborted before the end. What is not taken is dropped. */
export async function* piecesOf(body: AnswerBody, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const drop = () => void reader.cancel().catch(() => undefined);
  if (signal.aborted) drop();
  signal.addEventListener('abort', drop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done || value === undefined) return;
      yield value;
    }
  } finally {
    signal.removeEventListener('abort', drop);
    drop();
  }
}

/** The whole body as text; rejects when it has more than this many bytes. */
export async function textOf(
  answer: FetchAnswer,
  signal: AbortSignal,
  mostBytes = MOST_BYTES,
): Promise<string> {
  const { body } = answer;
  if (!body) return answer.text();
  const decoder = new TextDecoder();
  const texts: string[] = [];
  let bytes = 0;
  for await (const piece of piecesOf(body, signal)) {
    bytes += piece.byteLength;
    if (bytes > mostBytes) throw new Error(`it answers more than ${mostBytes} bytes`);
    texts.push(decoder.decode(piece, { stream: true }));
  }
  return texts.join('') + decoder.decode();
}
