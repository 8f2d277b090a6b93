/** What routes work with. The edge never sees subjects or store: commands go out, answers come back. */
import type { NodeAuthSettings } from '../auth/node.ts';
import type { OperatorAuthSettings } from '../auth/operator.ts';
import type { Answer } from '../authority/commands.ts';
import type { DocumentName, PublishedDocument } from '../authority/documents.ts';
import type { Call } from '../authority/open-authority.ts';
import type { Logger } from '../log/logger.ts';
import type { Metrics } from '../metrics.ts';
import type { GenesisBlock } from '../records/genesis.ts';
import type { Runtime } from '../runtime.ts';
import type { RoleRule } from './body.ts';
import type { RateBucket, RateLimiter } from './rate-limit.ts';
import type { Reply } from './reply.ts';
import type { Route } from './route.ts';

export interface EdgeSettings {
  readonly genesis: GenesisBlock;
  readonly publicUrl: string | null;
  readonly proxyHops: number;
  readonly maxRequestBytes: number;
  readonly createdStatus: 200 | 201;
  readonly isAllowedRole: RoleRule;
  readonly operatorAuth: OperatorAuthSettings;
  readonly nodeAuth: NodeAuthSettings;
}

export interface Edge {
  readonly settings: EdgeSettings;
  readonly call: Call;
  readonly documents: ReadonlyMap<DocumentName, PublishedDocument>;
  readonly limits: Readonly<Record<RateBucket, RateLimiter>>;
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Milliseconds on the monotonic clock. */
  readonly startedAt: number;
  readonly routes: readonly Route[];
  isDraining(): boolean;
}

/** Continues with an answer at once when it is there, and when it comes otherwise. */
export function withAnswer(
  answer: Answer | Promise<Answer>,
  toReply: (answer: Answer) => Reply,
): Reply | Promise<Reply> {
  return answer instanceof Promise ? answer.then(toReply) : toReply(answer);
}
