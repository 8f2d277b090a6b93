/** `npm run docs`: writes the pages that are generated from the code. */
import { writeFileSync } from 'node:fs';
import { PAGES } from './pages.ts';

for (const [name, page] of Object.entries(PAGES)) {
  writeFileSync(new URL(`../docs/${name}`, import.meta.url), page());
}
