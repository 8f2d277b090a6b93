/**
 * Certificates at rest, by the million: columns instead of objects, which take half the memory, and
 * which a collector of garbage need not copy. Behaves as a map of subjects by their ids.
 */
import {
  type Certificate,
  type CertificateFate,
  UNTOUCHED,
} from '../../../machines/certificate.ts';
import type { Subject, SubjectTable } from '../engine/subjects.ts';
import { createTextIndex, NONE } from './text-index.ts';

/** Node keys lie here as the bytes that their base64 text stands for. */
const KEY_BYTES = 32;

const ROWS_BITS = 12;
const ROWS = 1 << ROWS_BITS;

/** Columns of so many rows: memory grows block by block, and nothing is ever copied. */
class Block {
  readonly ids = new Array<string>(ROWS).fill('');
  readonly values = new Array<string>(ROWS).fill('');
  readonly nodePublicKeys = Buffer.alloc(ROWS * KEY_BYTES);
  readonly roles = new Array<readonly string[]>(ROWS).fill([]);
  readonly remoteAddrs = new Array<string>(ROWS).fill('');
  readonly fates = new Array<CertificateFate>(ROWS).fill(UNTOUCHED);
  readonly versions = new Float64Array(ROWS);
  readonly issuedAt = new Float64Array(ROWS);
  readonly expiresAt = new Float64Array(ROWS);
  readonly maxValidityHours = new Float64Array(ROWS);
}

export function createCertificateTable(): SubjectTable<'certificate'> {
  const blocks: Block[] = [];
  /** By number, the keys which are not what base64 makes of 32 bytes. */
  const oddKeys = new Map<number, string>();
  /** Certificates are numbered from 1. */
  let size = 0;
  const index = createTextIndex((number) => blockOf(number).ids[rowOf(number)] as string, 0);

  function blockOf(number: number): Block {
    return blocks[number >>> ROWS_BITS] as Block;
  }

  /** The number of the certificate; a new id takes the next one, in a block that exists by then. */
  function numberOf(id: string): number {
    const known = index.find(id);
    if (known !== NONE) return known;
    const next = size + 1;
    if (next >>> ROWS_BITS >= blocks.length) blocks.push(new Block());
    blockOf(next).ids[rowOf(next)] = id;
    index.put(id, next);
    size = next;
    return next;
  }

  function readKey({ nodePublicKeys }: Block, number: number): string {
    const start = rowOf(number) * KEY_BYTES;
    return oddKeys.get(number) ?? nodePublicKeys.toString('base64', start, start + KEY_BYTES);
  }

  function writeKey(block: Block, number: number, key: string): void {
    oddKeys.delete(number);
    block.nodePublicKeys.write(key, rowOf(number) * KEY_BYTES, KEY_BYTES, 'base64');
    if (readKey(block, number) !== key) oddKeys.set(number, key);
  }

  function read(number: number): Subject<'certificate'> {
    const block = blockOf(number);
    const row = rowOf(number);
    const fate = block.fates[row] as CertificateFate;
    return {
      version: block.versions[row] as number,
      value: block.values[row] as string,
      context: {
        nodePublicKey: readKey(block, number),
        roles: block.roles[row] as readonly string[],
        issuedAt: block.issuedAt[row] as number,
        expiresAt: block.expiresAt[row] as number,
        maxValidityHours: block.maxValidityHours[row] as number,
        remoteAddr: block.remoteAddrs[row] as string,
        renewedFrom: fate.renewedFrom,
        renewedAt: fate.renewedAt,
        supersededFrom: fate.supersededFrom,
        revokedAt: fate.revokedAt,
        revocationReason: fate.revocationReason,
        crlSequence: fate.crlSequence,
      },
    };
  }

  function write(number: number, { version, value, context }: Subject<'certificate'>): void {
    const block = blockOf(number);
    const row = rowOf(number);
    block.versions[row] = version;
    block.values[row] = value;
    writeKey(block, number, context.nodePublicKey);
    block.roles[row] = context.roles;
    block.issuedAt[row] = context.issuedAt;
    block.expiresAt[row] = context.expiresAt;
    block.maxValidityHours[row] = context.maxValidityHours;
    block.remoteAddrs[row] = context.remoteAddr;
    block.fates[row] = fateOf(context);
  }

  return {
    get size() {
      return size;
    },
    get(id) {
      const number = index.find(id);
      return number === NONE ? undefined : read(number);
    },
    set(id, subject) {
      write(numberOf(id), subject);
    },
    *entries() {
      for (let number = 1; number <= size; number += 1) {
        yield [blockOf(number).ids[rowOf(number)] as string, read(number)];
      }
    },
  };
}

function rowOf(number: number): number {
  return number & (ROWS - 1);
}

function fateOf(certificate: Certificate): CertificateFate {
  const { renewedFrom, renewedAt, supersededFrom, revokedAt, revocationReason, crlSequence } =
    certificate;
  const isUntouched = renewedFrom === null && renewedAt === null && revokedAt === null;
  if (isUntouched && supersededFrom === null && revocationReason === null && crlSequence === null) {
    return UNTOUCHED;
  }
  return { renewedFrom, renewedAt, supersededFrom, revokedAt, revocationReason, crlSequence };
}
