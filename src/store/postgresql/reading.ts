/**
 * A connection for reads while a service runs. It is not the one for changes, because a read that waits for the lock of
 * another session would delay them: it is given up instead, alone.
 */
import type { Client } from 'pg';
import { createTurns } from '../../base/work.ts';
import { disconnect, isOfStatement, isTimeout } from './connect.ts';
import { readingProblem } from './unreadable.ts';
import type { Session } from './writing.ts';

export interface Reading extends Pick<Session, 'read'> {
  end(): Promise<void>;
}

/** `connect` opens a connection whose statements wait for a lock or an answer only for a limited time. */
export function createReading(connect: () => Promise<Client>): Reading {
  let client: Client | null = null;
  const turns = createTurns();

  async function end(): Promise<void> {
    const ended = client;
    client = null;
    if (ended !== null) await disconnect(ended);
  }

  const read: Session['read'] = ({ table, ...statement }, values) =>
    turns.run(async () => {
      for (;;) {
        const isNew = client === null;
        client ??= await connect();
        try {
          return (await client.query({ ...statement, values: [...values] })).rows;
        } catch (cause) {
          if (!isOfStatement(cause)) await end();
          if (isTimeout(cause))
            throw new Error(`Table ${table} is locked, or slow: ${cause.message}`);
          if (isNew || isOfStatement(cause)) throw readingProblem(table, cause);
        }
      }
    });

  return { read, end };
}
