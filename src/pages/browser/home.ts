import { offerCopies } from './copy-ids.ts';

offerCopies();
