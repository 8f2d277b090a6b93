/** The generated pages of `docs/`, by name. */
import { cliPage } from './cli.ts';
import { configurationPage, configurationSchema } from './configuration.ts';
import { errorsPage } from './errors.ts';
import { machinesPage } from './machines.ts';

export const PAGES: Readonly<Record<string, () => string>> = {
  'cli.md': cliPage,
  'configuration.md': configurationPage,
  'mesh-na.schema.json': configurationSchema,
  'errors.md': errorsPage,
  'machines.md': machinesPage,
};
