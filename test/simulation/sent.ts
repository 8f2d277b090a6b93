/** A request of a history, and what the model predicts for it. */
import type { JsonObject } from '../../src/base/json/value.ts';
import type { OpenAuthority, Reply } from './authority-calls.ts';
import type { Proof } from './model/access.ts';
import type { Made, Moment, Outcome } from './model/state.ts';

/** A request that can be sent again, byte for byte. */
export interface Sent {
  readonly label: string;
  /** Whether replaying it is useful, which requires a signature. */
  readonly isSigned: boolean;
  /** For requests of nodes. */
  readonly proof?: Proof;
  /** What the edge forwards; null if it refuses the request. */
  judge(edgeNow: number): ((authority: OpenAuthority) => Reply | Promise<Reply>) | null;
  /** All the ways in which the request may end. */
  predict(moment: Moment): readonly Outcome[];
  /** Called when the request may succeed, before its answer is checked. */
  begun?(): void;
  /** What the client, or a reader, learns from a successful answer. */
  learn?(value: unknown, made: Made, decidedAt: number): void;
  refused?(details: JsonObject): void;
}
