import type { LeaseTable } from '../../../src/store/postgresql/lease-table.ts';
import type { Machine } from './clockwork.ts';
import type { Database } from './database.ts';

/** The lease row as one machine reaches it. */
export function leaseTable(database: Database, machine: Machine): LeaseTable {
  const { lease } = database;
  const ask = <Result>(question: () => Result) => database.ask(machine, question);
  return {
    look: () =>
      ask(() => ({
        term: lease.term,
        holder: lease.holder,
        link: lease.link,
        holderName: lease.holderName,
        configuration: lease.configuration,
        until: String(lease.expiresAt),
        lasts: database.lasts(),
        isReleased: database.isReleased(),
        isMoving: false,
      })),
    take: (claim, lasts, seen) =>
      ask(() => {
        const isSame = lease.term === seen.term && String(lease.expiresAt) === seen.until;
        if (!database.isReleased() && !isSame) return null;
        const wasReleased = lease.released;
        lease.term += 1;
        lease.holder = claim.id;
        lease.holderName = claim.name;
        lease.configuration = claim.configuration;
        lease.link = claim.link;
        lease.released = false;
        database.extend(lasts);
        database.notify();
        return { term: lease.term, wasReleased };
      }),
    renew: (claim, lasts) =>
      ask(() => {
        if (!database.isHeldBy(claim) || lease.released) return false;
        database.extend(lasts);
        return true;
      }),
    confirm: (claim) =>
      ask(() => {
        if (!database.isHeldBy(claim) || lease.released) return null;
        return database.remaining() > 0;
      }),
    end: (claim, isReleased) =>
      ask(() => {
        if (!database.isHeldBy(claim)) return;
        lease.released = isReleased;
        database.extend(0);
        database.notify();
      }),
    listen: (notified) => ask(() => database.listen(machine, notified)),
    disconnect: async () => undefined,
  };
}
