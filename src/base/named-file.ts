/**
 * Reads the files that people name. A device may have no end, and a pipe may have no writer: the service reads only files,
 * also through links, as the secrets of Kubernetes are. An argument of a command may also be a pipe, as a shell makes one
 * for `<(…)`. Nothing is read beyond a bound.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { sizeText } from './byte-bounds.ts';

/** Throws unless the path is a file, or a link to one, within the bound. */
export function readNamedFile(path: string, mostBytes: number): Buffer {
  // Without waiting for the writer of a pipe.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (stats.isFile() || stats.isDirectory()) return wholeOf(file, path, stats, mostBytes);
    const kind = stats.isFIFO() ? 'pipe' : 'device';
    throw new UnreadableFile(path, `it is a ${kind}; name a file`);
  } finally {
    closeSync(file);
  }
}

/** The same for an argument of a command, which may be a pipe or a terminal. */
export function readArgument(path: string, mostBytes: number): Buffer {
  const file = openSync(path, 'r');
  try {
    return wholeOf(file, path, fstatSync(file), mostBytes);
  } finally {
    closeSync(file);
  }
}

/** Its `code` says in words what codes of the system say about other files. */
export class UnreadableFile extends Error {
  readonly code: string;
  readonly path: string;

  constructor(path: string, code: string) {
    super(`${path} cannot be read: ${code}`);
    this.code = code;
    this.path = path;
  }
}

export function tooLong(path: string, mostBytes: number): UnreadableFile {
  return new UnreadableFile(path, `it has more than ${sizeText(mostBytes)}; name the right file`);
}

const PIECE_BYTES = 64 * 1024;

/** Sizes of devices and pipes are 0, and that of a file can be outdated. */
function wholeOf(file: number, path: string, stats: Stats, mostBytes: number): Buffer {
  if (stats.isDirectory()) {
    // As the system says it, which does not name the path.
    const cause = { errno: -osConstants.errno.EISDIR, code: 'EISDIR', syscall: 'read', path };
    throw Object.assign(
      new Error(`EISDIR: illegal operation on a directory, read '${path}'`),
      cause,
    );
  }
  const { size } = stats;
  if (size > mostBytes) throw tooLong(path, mostBytes);
  const pieces: Buffer[] = [];
  let length = 0;
  for (let next = size + 1; ; next = PIECE_BYTES) {
    const piece = Buffer.allocUnsafe(Math.max(next, PIECE_BYTES));
    const read = readSync(file, piece);
    if (read === 0) break;
    length += read;
    if (length > mostBytes) throw tooLong(path, mostBytes);
    pieces.push(piece.subarray(0, read));
  }
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
}
