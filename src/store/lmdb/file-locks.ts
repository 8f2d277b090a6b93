/** Locks on files and parts of them, which the system releases no matter how their process ends. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Loaded on first use: commands that lock nothing start without native code. */
export function fileLocks(): typeof import('fs-native-extensions') {
  return require('fs-native-extensions');
}
