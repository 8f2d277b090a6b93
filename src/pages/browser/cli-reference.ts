import { filterReference } from './filter.ts';

filterReference();
