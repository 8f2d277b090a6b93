/** `npm start` and `npm run mesh-na`: runs the compiled program in this process; compiles it first if it must. */
import { pathToFileURL } from 'node:url';
import { builtProgram } from './build-program.js';

/** As the program's own exit code for local files that cannot be used. */
const UNUSABLE = 3;

const main = builtOrNull();
if (main !== null) await import(pathToFileURL(main).href);

function builtOrNull() {
  try {
    return builtProgram();
  } catch ({ message }) {
    process.stderr.write(`mesh-na: ${message}\n`);
    process.exitCode = UNUSABLE;
    return null;
  }
}
