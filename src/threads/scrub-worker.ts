/** The process that reads one part of the stored state. */
import { type ScrubTask, scrubPart } from '../store/lmdb/scrub.ts';
import { carryOutTask } from './apart-task.ts';

carryOutTask((task: ScrubTask) => scrubPart(task));
