#!/usr/bin/env -S node --no-allocation-site-pretenuring
import { buildProgram, runProgram } from './program.ts';

await runProgram(buildProgram());
