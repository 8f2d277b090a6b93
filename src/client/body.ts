/**
 * Reads the bodies of answers. Reading stops when the signal is aborted, even if `fetch` ignores it: with `redirect:
 * 'error'`, as used here, `fetch` of Node.js 20.20 loses the signal when garbage is collected while the body is read
 * (nodejs/undici#4627).
 */
import type { AnswerBody, FetchAnswer } from './options.ts';

/** An answer with more bytes than were wanted. */
export class LongAnswer extends Error {
  constructor(mostBytes: number) {
    super(`the answer has more than ${mostBytes} bytes`);
  }
}

/** Rejects with the signal's reason when it is aborted before the end. The unread rest is dropped. */
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

/** Returns the body as text; rejects with a `LongAnswer` when it says that it has more than `mostBytes` bytes, or has. */
export async function textOf(
  answer: FetchAnswer,
  signal: AbortSignal,
  mostBytes: number,
): Promise<string> {
  const { body, headers } = answer;
  if (Number(headers.get('content-length')) > mostBytes) {
    await body
      ?.getReader()
      .cancel()
      .catch(() => undefined);
    throw new LongAnswer(mostBytes);
  }
  if (!body) return answer.text();
  const decoder = new TextDecoder();
  const texts: string[] = [];
  let bytes = 0;
  for await (const piece of piecesOf(body, signal)) {
    bytes += piece.byteLength;
    if (bytes > mostBytes) throw new LongAnswer(mostBytes);
    texts.push(decoder.decode(piece, { stream: true }));
  }
  return texts.join('') + decoder.decode();
}
