import type { Writable } from '../../base/json/write.ts';

/** What a query returns whose answer is still to come: it has to be read from the store, or has yet to happen. */
export class AsyncResult {
  readonly made: Promise<Writable>;

  constructor(made: Promise<Writable>) {
    this.made = made;
  }
}
