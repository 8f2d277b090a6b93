const MIB = 1024 * 1024;

/** The most bytes that are read of what others have written, by what it is. */
export const MOST_BYTES = {
  /** A key, a token, a head: a few hundred bytes. */
  key: MIB / 16,
  /** Settings and certificates; a bundle of all public authorities has a quarter of this. */
  settings: MIB,
  /** A signed record or a page of a list: bodies have at most 2 MiB, and pages little more. */
  record: 16 * MIB,
  /** A whole list: a million revocations have about 180 MB. */
  list: 256 * MIB,
} as const;

/** The bound in words. */
export function sizeText(bytes: number): string {
  return bytes < MIB ? `${bytes / 1024} KiB` : `${bytes / MIB} MiB`;
}
