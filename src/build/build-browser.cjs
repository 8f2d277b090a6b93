/**
 * Bundles the style sheets and scripts of the pages: `node build-browser.cjs FOLDER` writes them to that folder. An
 * uncompiled checkout calls this at startup, so it is a CommonJS module, which loads synchronously.
 */
const { mkdirSync, writeFileSync } = require('node:fs');
const { basename, join } = require('node:path');

const SOURCES = {
  pages: 'pages/browser/pages.ts',
  console: 'pages/browser/console.ts',
  'pages-style': 'pages/ui/style.css',
  'console-style': 'console/console.css',
};

/** The text of each file, by name. */
function browserFiles() {
  const { outputFiles } = require('esbuild').buildSync({
    absWorkingDir: join(__dirname, '..'),
    entryPoints: SOURCES,
    outdir: __dirname,
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    logLevel: 'error',
    // Without "use strict": the compiler has checked the sources as modules.
    tsconfigRaw: {},
  });
  return new Map(outputFiles.map(({ path, text }) => [basename(path), text.trimEnd()]));
}

module.exports = { browserFiles };

if (require.main === module) {
  const folder = process.argv[2];
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of browserFiles()) writeFileSync(join(folder, name), text);
}
