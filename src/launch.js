#!/usr/bin/env -S node --no-allocation-site-pretenuring
import { register } from 'tsx/esm/api';

// Without this, tsx would obey a tsconfig.json of whatever folder the command is run from.
register({ tsconfig: false });
await import('./main.ts');
