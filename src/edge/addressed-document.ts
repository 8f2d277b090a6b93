/**
 * A document whose end contains the base URL. Clients can choose that URL, so complete documents are not cached: the
 * part before the end is rendered once, plain and compressed, and the end is added while sending.
 */
import { constants, crc32, deflateRawSync } from 'node:zlib';
import { etagOf } from '../protocol/contract/documents.ts';

export interface AddressedText {
  readonly beginning: string;
  /** At most 64 KiB. */
  end(baseUrl: string): string;
}

/** Characters per piece: a piece that is not accepted at once is copied for each reader. */
const PIECE_LENGTH = 32 * 1024;

export type AddressedDocument = ReturnType<typeof addressedDocument>;

export function addressedDocument({ beginning, end }: AddressedText) {
  const bytes = Buffer.from(beginning);
  const digest = etagOf(bytes);
  const checksum = crc32(bytes);
  const start = Buffer.concat([GZIP_HEADER, deflateRawSync(bytes, TO_BE_CONTINUED)]);
  const pieces = piecesOf(beginning);
  return {
    etag: (baseUrl: string) => etagOf(`${digest}${end(baseUrl)}`),
    /** The pieces of the document, to be sent one by one. */
    pieces: (baseUrl: string) => [...pieces, end(baseUrl)],
    /** The document as one gzip file. */
    compressed(baseUrl: string): Uint8Array {
      const last = Buffer.from(end(baseUrl));
      const size = bytes.length + last.length;
      return Buffer.concat([start, storedBlock(last), trailer(crc32(last, checksum), size)]);
    },
  };
}

/** Splits the text without separating surrogate pairs. */
function piecesOf(text: string): readonly string[] {
  return text.match(new RegExp(`.{1,${PIECE_LENGTH}}`, 'gsu')) ?? [];
}

/** RFC 1952, 2.3: deflate, with no name, time or operating system. */
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** Ends on a byte boundary, without a final block. */
const TO_BE_CONTINUED = { finishFlush: constants.Z_SYNC_FLUSH };

/** RFC 1951, 3.2.4: an uncompressed final block. */
function storedBlock(content: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(1, 0);
  head.writeUInt16LE(content.length, 1);
  head.writeUInt16LE(content.length ^ 0xffff, 3);
  return Buffer.concat([head, content]);
}

function trailer(checksum: number, size: number): Buffer {
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32LE(checksum, 0);
  numbers.writeUInt32LE(size, 4);
  return numbers;
}
