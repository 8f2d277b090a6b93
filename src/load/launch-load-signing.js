import { register } from 'tsx/esm/api';

register({ tsconfig: false });
await import('./load-signing-worker.ts');
