import { runProgram } from '../../src/cli/run-program.ts';
import { buildLoadProgram } from './program.ts';

await runProgram(buildLoadProgram());
