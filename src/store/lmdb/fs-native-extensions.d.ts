/** Types of the functions used here; the package ships none. */
declare module 'fs-native-extensions' {
  /** True if this open file now holds the exclusive lock on these bytes, or on the entire file. */
  export function tryLock(fd: number, offset?: number, length?: number): boolean;
  export function unlock(fd: number, offset: number, length: number): void;
}
