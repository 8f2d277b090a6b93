#!/usr/bin/env -S node --no-allocation-site-pretenuring
import { buildProgram } from './program.ts';
import { runProgram } from './run-program.ts';

await runProgram(buildProgram());
