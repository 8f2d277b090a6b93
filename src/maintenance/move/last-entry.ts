/** The entry of the audit log by which a state says that it goes on elsewhere. */
import { createAuditChain } from '../../authority/subjects/audit.ts';
import type { Runtime } from '../../base/runtime.ts';
import { auditLine, encodeEntries } from '../../store/audit-rows.ts';
import type { LastEntry, StateReading } from '../../store/move/ports.ts';
import type { StateFacts } from '../../store/stream/ports.ts';
import { decodeTotals, encodeTotals } from '../../store/totals.ts';

/** It is the last of the old log, and so a part of the new one. */
export function lastEntry(
  { meta, source }: Pick<StateReading, 'meta' | 'source'>,
  details: { readonly from: string; readonly to: string },
  runtime: Runtime,
): LastEntry {
  const { revision, auditHead }: StateFacts = source.facts;
  const drafts = [
    { type: 'store_moved', details: { ...details, revision }, actorKeyId: null },
  ] as const;
  const [entry] = createAuditChain(auditHead, runtime).extend(drafts, runtime.now());
  if (entry === undefined) throw new Error('The audit log was not extended');
  const totals = decodeTotals(meta.get('totals'));
  const number = totals.auditEntries + 1;
  return {
    number,
    row: encodeEntries(number, [auditLine(entry)]),
    totals: encodeTotals({ ...totals, revision: revision + 1, auditEntries: number }),
  };
}
