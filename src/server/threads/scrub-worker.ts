/** The process that reads one part of the stored state. */
import { scrubFolder } from '../../store/lmdb/scrub.ts';
import { parseStoreAddress } from '../../store/postgresql/address.ts';
import { scrubDatabase } from '../../store/postgresql/scrub.ts';
import type { ScrubbedPart } from '../../store/scrub.ts';
import type { ScrubTask } from './apart.ts';
import { carryOutTask } from './apart-task.ts';

carryOutTask(scrub);

function scrub({ dataDir, database, from, parts }: ScrubTask): Promise<ScrubbedPart> {
  return database === null
    ? scrubFolder(dataDir, from, parts)
    : scrubDatabase(parseStoreAddress(database.url, database.environment), from, parts);
}
