/**
 * Bundles the browser scripts of the pages: `node build-browser.cjs FOLDER` writes them to that folder. An uncompiled
 * checkout calls this at startup, so it is a CommonJS module, which loads synchronously.
 */
const { mkdirSync, writeFileSync } = require('node:fs');
const { basename, join } = require('node:path');

const SCRIPTS = [
  'api-reference',
  'atlas',
  'cli-reference',
  'connectome',
  'console',
  'dashboard',
  'details',
  'frame',
  'home',
  'search',
];

/** The text of each script, by name. */
function browserScripts() {
  const { outputFiles } = require('esbuild').buildSync({
    entryPoints: SCRIPTS.map((name) => join(__dirname, '..', 'pages', 'browser', `${name}.ts`)),
    outdir: __dirname,
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    logLevel: 'error',
    // Without "use strict", which would be on every page twice: the compiler has checked the sources as modules.
    tsconfigRaw: {},
  });
  return new Map(outputFiles.map(({ path, text }) => [basename(path, '.js'), text.trimEnd()]));
}

module.exports = { browserScripts };

if (require.main === module) {
  const folder = process.argv[2];
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of browserScripts()) writeFileSync(join(folder, `${name}.js`), text);
}
