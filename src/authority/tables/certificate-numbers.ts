/**
 * A small number for each known certificate, so that several tables can hold their data in columns and
 * share one index of ids. Released numbers are reused.
 */
import { createTextIndex, NONE } from './text-index.ts';

export interface CertificateNumbers {
  /** The highest number assigned so far; numbers start at 1. */
  readonly highest: number;
  /** The number of certificates. */
  readonly size: number;
  /** The number of the certificate, or `NONE`. */
  find(id: string): number;
  /** The number of the certificate, assigned if it has none. */
  take(id: string): number;
  /** Call when no table holds anything under the number. */
  release(number: number): void;
  /** Null when the number is free. */
  idOf(number: number): string | null;
}

export function createCertificateNumbers(firstSlots?: number): CertificateNumbers {
  const ids: (string | null)[] = [null];
  const free: number[] = [];
  // Ids are random and generated here: strangers cannot choose them.
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
