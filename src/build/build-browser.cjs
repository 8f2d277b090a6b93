/**
 * Bundles the scripts of pages, one for each page: `node build-browser.cjs FOLDER` writes them there. A
 * checkout that is not compiled calls it as it starts, which is why this is a module that loads at once.
 */
const { mkdirSync, writeFileSync } = require('node:fs');
const { basename, join } = require('node:path');

const SCRIPTS = [
  'api-reference',
  'atlas',
  'cli-reference',
  'connectome',
  'dashboard',
  'details',
  'home',
  'theme',
];

/** The text of each script by its name. */
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
  });
  return new Map(outputFiles.map(({ path, text }) => [basename(path, '.js'), text.trimEnd()]));
}

module.exports = { browserScripts };

if (require.main === module) {
  const folder = process.argv[2];
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of browserScripts()) writeFileSync(join(folder, `${name}.js`), text);
}
