import { register } from 'tsx/esm/api';

// A thread does not inherit how its process loads TypeScript.
register({ tsconfig: false });
await import('./press-worker.ts');
