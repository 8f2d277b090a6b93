/** Which reports of nodes count as healthy. */

/** The statuses of nodes that have not reported yet. */
export const NOT_REPORTED: ReadonlySet<string> = new Set(['joined', 'renewed']);

/** First words of a report that count as healthy; nodes choose the text of their reports. */
const WELL = new Set([
  ...['healthy', 'ok', 'okay', 'good', 'fine', 'well', 'up', 'ready', 'running', 'active'],
  ...['online', 'alive', 'idle', 'busy', 'serving', 'normal', 'unknown', ''],
  ...NOT_REPORTED,
]);

/** Whether a node has fallen silent; one that has only joined has never been heard, and no count has it [core-6-5]. */
export function isSilentNode(row: { readonly status: string; readonly node_status: string }) {
  return row.status === 'silent' && row.node_status !== 'joined';
}

/** Whether a node that reports this text is healthy; anything not known to be good counts as bad. */
export function reportsHealth(status: string): boolean {
  return WELL.has(/^\s*([a-z]*)/i.exec(status)?.[1]?.toLowerCase() ?? '');
}

/** Whether the report is the wanted one; `well` stands for every report that is healthy, `unwell` for the others. */
export function isInHealth(status: string, wanted: string): boolean {
  if (wanted === 'well') return reportsHealth(status);
  return wanted === 'unwell' ? !reportsHealth(status) : status === wanted;
}
