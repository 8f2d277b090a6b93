/**
 * What the edge reports to the authority, as plain, serializable values. The edge handles HTTP, parsing, schemas and
 * signatures and reports the results as verdicts; the authority, which alone knows the state, refuses in the specified
 * order of checks.
 */

/** What an operator's key may do. */
export type Tier = 'standard' | 'privileged';

/** Identifies a request whose answer is kept [core-2-5]. */
export interface RequestIdentity {
  /**
   * Digest of method, path and signature: it differs between two signed requests of one key, but not between two
   * deliveries of the same request.
   */
  readonly request: string;
  /** Whether the sender says that the request may have arrived before: `X-Mesh-Retry: 1`. */
  readonly isRepeat: boolean;
}

export type NodeProofVerdict =
  | 'valid'
  | 'missing_fields'
  | 'invalid_timestamp'
  | 'stale_timestamp'
  | 'nonce_replay'
  | 'invalid_signature'
  /** A heartbeat that does not count for its session [core-3-4]; it says nothing about the key. */
  | 'session_ended';

/** A node's proof of possession, as checked by the edge. */
export interface NodeClaim {
  readonly publicKey: string;
  /** Milliseconds since the epoch; 0 if the timestamp is missing or unreadable. */
  readonly signedAt: number;
  /** Null in a session, where `signedAt` must be later than before instead. */
  readonly nonce: string | null;
  readonly verdict: NodeProofVerdict;
  readonly remoteAddr: string;
  /** Null if no answer is kept. */
  readonly identity: RequestIdentity | null;
}

export type OperatorProofVerdict =
  | 'valid'
  | 'missing_headers'
  | 'oversized_headers'
  | 'invalid_timestamp'
  | 'stale_timestamp'
  | 'nonce_replay'
  | 'invalid_signature'
  /** A valid version 1 signature over an empty body, which binds the request to nothing. */
  | 'v1_unbound';

/** An operator's signed headers, as checked by the edge. */
export interface OperatorClaim {
  readonly keyId: string;
  /** Milliseconds since the epoch; 0 if the timestamp is missing, unreadable or not current. */
  readonly signedAt: number;
  readonly nonce: string;
  readonly verdict: OperatorProofVerdict;
  /** The payload version that the valid signature covers; null without a valid signature. */
  readonly signatureVersion: 1 | 2 | null;
  /** Path template of the route, for the audit log. */
  readonly scope: string;
  readonly remoteAddr: string;
  /** Null if no answer is kept. */
  readonly identity: RequestIdentity | null;
}

/**
 * How old, or ahead of our clock, a delete envelope may be, in milliseconds [service-agent-delete-envelope]. Unlike the
 * tolerance for signed requests, it cannot be configured. The edge checks it, and the authority remembers envelopes for
 * as long.
 */
export const DELETE_ENVELOPE_TOLERANCE = 5 * 60_000;
