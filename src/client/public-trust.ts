/**
 * Unauthenticated requests that read and verify trust between sovereigns [core-4-11] to [core-4-15].
 */

import { SovereignRevocationFeed } from '../protocol/records/revocation-feed.ts';
import {
  Atlas,
  Connectome,
  ConsideredTrust,
  ExplainedTrust,
  RecognitionGraph,
  TrustPath,
} from '../protocol/rows/graph.ts';
import type { Calls } from './calls.ts';
import type { CallOptions } from './options.ts';

/** A list of base64 keys, or keys by a name of the caller's choice; empty accepts nothing. */
export type PublicKeys = readonly string[] | { readonly [keyId: string]: string };

/** Without a limit, the answer has the whole list. */
export type Page = {
  readonly limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  readonly cursor?: string | undefined;
};

/** Questions beyond the current path; at least one is required. */
export type TrustQuestion = {
  /** Requests why, until when, what else was considered, and which treaties the trust depends on. */
  readonly explain?: boolean | undefined;
  /** Ids of treaties to ignore, as if they had ended; at most 16. */
  readonly without?: readonly string[] | undefined;
  /** An earlier time to evaluate at. */
  readonly as_of?: string | undefined;
};

export interface PublicTrust {
  revocationFeed(issuer?: string, call?: CallOptions): Promise<SovereignRevocationFeed>;
  recognitionGraph(call?: CallOptions): Promise<RecognitionGraph>;
  connectome(call?: CallOptions): Promise<Connectome>;
  trustPath(from: string, to: string, call?: CallOptions): Promise<TrustPath>;
  /** Like `trustPath`, with the digest of the graph and the answers to the given questions. */
  askTrust(
    from: string,
    to: string,
    question: TrustQuestion,
    call?: CallOptions,
  ): Promise<ConsideredTrust>;
  atlas(call?: CallOptions): Promise<Atlas>;
}

export function publicTrust(calls: Calls): PublicTrust {
  const { get } = calls;
  return {
    revocationFeed: (issuer, call) =>
      get(
        SovereignRevocationFeed,
        '/sovereign-revocation-feed',
        { issuer_sovereign_id: issuer },
        call,
      ),
    recognitionGraph: (call) => get(RecognitionGraph, '/recognition-graph', {}, call),
    connectome: (call) => get(Connectome, '/connectome.json', {}, call),
    trustPath: (from, to, call) => get(TrustPath, '/connectome/trust-path', { from, to }, call),
    askTrust: (from, to, { explain = false, ...question }, call) =>
      get(
        // An authority that does not support these questions answers the plain path, which must be rejected.
        explain ? ExplainedTrust : ConsideredTrust,
        '/connectome/trust-path',
        { from, to, explain: explain ? '1' : '0', ...question },
        call,
      ),
    atlas: (call) => get(Atlas, '/atlas.json', {}, call),
  };
}
