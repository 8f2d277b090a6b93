/**
 * libsodium. It is required, because Node.js takes 40 ms longer to import it: for an `import`, CommonJS is first searched
 * for the names of its exports.
 */
import { createRequire } from 'node:module';

export const sodium: typeof import('sodium-native') = createRequire(import.meta.url)(
  'sodium-native',
);
