/** Which reports of nodes count as healthy. */

/** First words of a report that count as healthy; nodes choose the text of their reports. */
const WELL = new Set([
  ...['healthy', 'ok', 'okay', 'good', 'fine', 'well', 'up', 'ready', 'running', 'active'],
  ...['online', 'alive', 'idle', 'busy', 'serving', 'normal', 'joined', 'renewed', 'unknown', ''],
]);

/** Whether a node that reports this text is healthy; anything not known to be good counts as bad. */
export function reportsHealth(status: string): boolean {
  return WELL.has(/^\s*([a-z]*)/i.exec(status)?.[1]?.toLowerCase() ?? '');
}

/** Whether the report is the wanted one; `well` stands for every report that is healthy, `unwell` for the others. */
export function isInHealth(status: string, wanted: string): boolean {
  if (wanted === 'well') return reportsHealth(status);
  return wanted === 'unwell' ? !reportsHealth(status) : status === wanted;
}
