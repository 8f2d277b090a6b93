import { offerCopies } from './copy-ids.ts';
import { relateTimes } from './relative-times.ts';

offerCopies();
relateTimes();
