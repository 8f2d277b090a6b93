/** `npm run docs`: writes the pages that are generated from the code. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PAGES } from './pages.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

for (const [name, page] of Object.entries(PAGES)) {
  writeFileSync(join(root, 'docs', name), page(root));
}
