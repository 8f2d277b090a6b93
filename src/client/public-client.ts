/** Unauthenticated requests: the operations of the API, and helpers for answers that take more than one form. */
import type { AuthorityKeys } from '../protocol/records/authority-chain.ts';
import type { DataLicensePolicy } from '../protocol/records/data-usage.ts';
import { CertificateRevocationList } from '../protocol/records/revocation-list.ts';
import { RevocationListDelta } from '../protocol/records/revocation-list-delta.ts';
import { ConsideredTrust, ExplainedTrust } from '../protocol/rows/graph.ts';
import { AuthorityError } from './authority-error.ts';
import { type Operations, operations, publicCalls } from './operations.ts';
import type { CallOptions, ServerOptions, SigningOptions } from './options.ts';

/** Questions beyond the current path; at least one is required. */
export type TrustQuestion = {
  /** Requests why, until when, what else was considered, and which treaties the trust depends on. */
  readonly explain?: boolean | undefined;
  /** Ids of treaties to ignore, as if they had ended; at most 16. */
  readonly without?: readonly string[] | undefined;
  /** An earlier time to evaluate at. */
  readonly as_of?: string | undefined;
};

export interface PublicClient extends Operations<'public' | 'public-or-operator'> {
  /**
   * The keys of the authority and the succession statements; `createNetworkTrust` verifies them. Null from an authority
   * that has no such document.
   */
  authorityKeys(call?: CallOptions): Promise<AuthorityKeys | null>;
  crl(call?: CallOptions): Promise<CertificateRevocationList>;
  /** The changes of the list since a sequence; `410 delta_unavailable` if it is too old. */
  crlSince(sequence: number, call?: CallOptions): Promise<RevocationListDelta>;
  /** The policy in force; null when there is none. */
  licensePolicy(call?: CallOptions): Promise<DataLicensePolicy | null>;
  /** Like `trustPath`, with the digest of the graph and the answers to the given questions. */
  askTrust(
    from: string,
    to: string,
    question: TrustQuestion,
    call?: CallOptions,
  ): Promise<ConsideredTrust>;
}

export function createPublicClient(server: ServerOptions): PublicClient {
  const calls = publicCalls(server);
  const { get } = calls;
  const derived = operations(calls, 'public', 'public-or-operator');
  return {
    ...derived,
    authorityKeys: (call) => derived.readAuthorityKeys(call).catch(nullIfAbsent),
    crl: (call) => get(CertificateRevocationList, '/crl', {}, call),
    crlSince: (sequence, call) => get(RevocationListDelta, '/crl', { since: sequence }, call),
    licensePolicy: (call) => derived.readLicensePolicy(call).catch(nullWithoutPolicy),
    askTrust: (from, to, { explain = false, ...question }, call) =>
      get(
        // An authority that does not support these questions answers the plain path, which must be rejected.
        explain ? ExplainedTrust : ConsideredTrust,
        '/connectome/trust-path',
        { from, to, explain: explain ? '1' : '0', ...question },
        call,
      ),
  };
}

function nullIfAbsent(error: unknown): null {
  if (error instanceof AuthorityError && error.status === 404) return null;
  throw error;
}

function nullWithoutPolicy(error: unknown): null {
  if (error instanceof AuthorityError && error.code === 'no_policy') return null;
  throw error;
}

/** Returns the authority's public key from the options, or else from `/sovereign.json`, fetched once. */
export function audienceSource(options: SigningOptions): () => Promise<string> {
  let known: Promise<string> | null =
    options.audience === undefined ? null : Promise.resolve(options.audience);
  return async () => {
    known ??= fetchAudience(options);
    try {
      return await known;
    } catch (error) {
      // Let the next request try again: one failed look-up must not disable the client.
      known = null;
      throw error;
    }
  };
}

async function fetchAudience(options: SigningOptions): Promise<string> {
  return (await createPublicClient(options).readSovereign()).network_authority.public_key;
}
