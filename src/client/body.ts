/**
 * Reads the bodies of answers. Reading stops when the signal is aborted, even if `fetch` ignores it: with `redirect:
 * 'error'`, as used here, `fetch` of Node.js 20.20 loses the signal when garbage is collected while the body is read
 * (nodejs/undici#4627).
 */
import type { AnswerBody, FetchAnswer } from './options.ts';

/** About the maximum length of a JavaScript string. */
const MOST_BYTES = 512 * 1024 * 1024;

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

/** Returns the body as text; rejects when it has more than `mostBytes` bytes. */
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
    if (bytes > mostBytes) throw new Error(`the answer has more than ${mostBytes} bytes`);
    texts.push(decoder.decode(piece, { stream: true }));
  }
  return texts.join('') + decoder.decode();
}
