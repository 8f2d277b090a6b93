import { runProgram } from '../../src/cli/program.ts';
import { buildLoadProgram } from './program.ts';

await runProgram(buildLoadProgram());
