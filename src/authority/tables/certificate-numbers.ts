/**
 * A small number for each certificate that is known, so that several tables can hold what they know of it
 * in columns, and one index of ids serves them all. Numbers that are released are given out again.
 */
import { createTextIndex, NONE } from './text-index.ts';

export interface CertificateNumbers {
  /** The highest number given out so far; numbers start with 1. */
  readonly highest: number;
  /** How many certificates have a number. */
  readonly size: number;
  /** The number of the certificate, or `NONE`. */
  find(id: string): number;
  /** The number of the certificate, which gets one if it has none. */
  take(id: string): number;
  /** Call when no table holds anything under the number any more. */
  release(number: number): void;
  /** Null when nobody has the number. */
  idOf(number: number): string | null;
}

export function createCertificateNumbers(firstSlots?: number): CertificateNumbers {
  const ids: (string | null)[] = [null];
  const free: number[] = [];
  // Ids are made here and are random: strangers cannot choose them.
  const index = createTextIndex((number) => ids[number] as string, 0, firstSlots);

  return {
    get highest() {
      return ids.length - 1;
    },
    get size() {
      return ids.length - 1 - free.length;
    },
    find: index.find,
    take(id) {
      const known = index.find(id);
      if (known !== NONE) return known;
      const number = free.pop() ?? ids.length;
      ids[number] = id;
      index.put(id, number);
      return number;
    },
    release(number) {
      index.remove(ids[number] as string);
      ids[number] = null;
      free.push(number);
    },
    idOf: (number) => ids[number] ?? null,
  };
}
