/** The one function that is used here of a package without types of its own. */
declare module 'fs-native-extensions' {
  /** True when the exclusive lock on the whole file is now held by this open file. */
  export function tryLock(fd: number): boolean;
}
