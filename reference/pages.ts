/** The generated pages of `docs/`, by name. */
import { cliPage } from './cli.ts';
import { configurationPage } from './configuration.ts';
import { errorsPage } from './errors.ts';
import { routesPage } from './routes.ts';

export const PAGES: Readonly<Record<string, () => string>> = {
  'cli.md': cliPage,
  'configuration.md': configurationPage,
  'errors.md': errorsPage,
  'routes.md': routesPage,
};
