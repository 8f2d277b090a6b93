/** A request of a history, and what the model says of it. */
import type { JsonObject } from '../../src/base/json/value.ts';
import type { OpenAuthority, Reply } from './authority-calls.ts';
import type { Proof } from './model/access.ts';
import type { Made, Moment, Outcome } from './model/state.ts';

/** A request that can be sent again, byte for byte. */
export interface Sent {
  readonly label: string;
  /** Whether it is worth sending again: it is signed. */
  readonly isSigned: boolean;
  /** Of a node. */
  readonly proof?: Proof;
  /** What the edge makes of it: null when it goes no further. */
  judge(edgeNow: number): ((authority: OpenAuthority) => Reply | Promise<Reply>) | null;
  /** All the ways that the request may end. */
  predict(moment: Moment): readonly Outcome[];
  /** Called when the request may succeed, before its answer is looked at. */
  begun?(): void;
  /** What the client, or a reader, knows from a successful answer. */
  learn?(value: unknown, made: Made, decidedAt: number): void;
  refused?(details: JsonObject): void;
}
