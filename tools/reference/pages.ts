/** The generated pages of `docs/`, by name; each is made for the project in a folder. */
import { architecturePage } from './architecture.ts';
import { cliPage } from './cli.ts';
import { configurationPage, configurationSchema } from './configuration.ts';
import { errorsPage } from './errors.ts';
import { machinesPage } from './machines.ts';

export const PAGES: Readonly<Record<string, (root: string) => string>> = {
  'architecture.md': architecturePage,
  'cli.md': cliPage,
  'configuration.md': configurationPage,
  'mesh-na.schema.json': configurationSchema,
  'errors.md': errorsPage,
  'machines.md': machinesPage,
};
