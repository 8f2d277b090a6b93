/** What is used here of a package without types of its own. */
declare module 'fs-native-extensions' {
  /** True when this open file now holds the exclusive lock on these bytes, or on the whole file. */
  export function tryLock(fd: number, offset?: number, length?: number): boolean;
  export function unlock(fd: number, offset: number, length: number): void;
}
