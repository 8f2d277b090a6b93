/** `npm start` and `npm run mesh-na`: compiles the program if necessary, then runs it in this process. */
import { pathToFileURL } from 'node:url';
import { builtProgram } from './build-program.js';

/** The same exit code that the program uses for unusable local files. */
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
