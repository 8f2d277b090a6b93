/**
 * What anyone may read and have verified about trust between sovereigns [core-4-6], [core-4-11] to
 * [core-4-15].
 */
import type { JsonObject } from '../json/value.ts';
import { jsonText } from '../json/write.ts';
import type { AgentDescriptor } from '../records/agent-descriptor.ts';
import type { RecognitionPolicy } from '../records/recognition-policy.ts';
import type { SovereignRevocationFeed } from '../records/revocation-feed.ts';
import { AuthorityError } from './authority-error.ts';
import { type Query, send } from './http.ts';
import type { ServerOptions } from './options.ts';
import type {
  AgentList,
  Atlas,
  AttestationList,
  AttestationRow,
  AttestationVerdict,
  Connectome,
  RecognitionGraph,
  TreatyAttestationVerdict,
  TreatyList,
  TreatyRow,
  TreatyVerdict,
  TrustPath,
} from './trust-answers.ts';

/** A list of base64 keys, or keys by a name of the caller's choice; empty accepts nothing. */
export type PublicKeys = readonly string[] | { readonly [keyId: string]: string };

export type AttestationFilters = {
  readonly issuer_sovereign_id?: string;
  readonly subject_id?: string;
  readonly status?: string;
};

export type TreatyFilters = {
  readonly issuer_sovereign_id?: string;
  readonly subject_sovereign_id?: string;
  readonly status?: string;
};

/** Records to verify are sent as they were received. Without a policy the authority's own decides. */
export type VerifyAttestationRequest = {
  readonly attestation: JsonObject;
  readonly recognition_policy?: JsonObject;
};

/** Without keys the treaty must be signed by the authority that is asked. */
export type VerifyWithTreatyRequest = {
  readonly attestation: JsonObject;
  readonly treaty: JsonObject;
  readonly treaty_issuer_public_keys?: PublicKeys;
};

export type VerifyTreatyRequest = {
  readonly treaty: JsonObject;
  readonly issuer_public_keys?: PublicKeys;
  readonly expected_issuer_sovereign_id?: string;
  readonly expected_subject_sovereign_id?: string;
};

export interface PublicTrust {
  agents(capability?: string): Promise<AgentList>;
  agent(nodePublicKey: string): Promise<AgentDescriptor>;
  attestations(filters?: AttestationFilters): Promise<AttestationList>;
  attestation(id: string): Promise<AttestationRow>;
  /** Null when none is configured. */
  recognitionPolicy(): Promise<RecognitionPolicy | null>;
  treaties(filters?: TreatyFilters): Promise<TreatyList>;
  treaty(id: string): Promise<TreatyRow>;
  revocationFeed(issuer?: string): Promise<SovereignRevocationFeed>;
  recognitionGraph(): Promise<RecognitionGraph>;
  connectome(): Promise<Connectome>;
  trustPath(from: string, to: string): Promise<TrustPath>;
  atlas(): Promise<Atlas>;
  verifyAttestation(request: VerifyAttestationRequest): Promise<AttestationVerdict>;
  verifyAttestationWithTreaty(request: VerifyWithTreatyRequest): Promise<TreatyAttestationVerdict>;
  verifyTreaty(request: VerifyTreatyRequest): Promise<TreatyVerdict>;
}

export function publicTrust(server: ServerOptions): PublicTrust {
  function get<T>(path: string, parameters: QueryParameters = {}): Promise<T> {
    return send<T>(server, { method: 'GET', path, query: queryOf(parameters) });
  }
  function post<T>(path: string, body: JsonObject): Promise<T> {
    return send<T>(server, { method: 'POST', path, body: jsonText(body) });
  }
  return {
    agents: (capability) => get('/agents', { capability }),
    agent: (nodePublicKey) => get(`/agents/${encodeURIComponent(nodePublicKey)}`),
    attestations: (filters) => get('/attestations', filters),
    attestation: (id) => get(`/attestations/${encodeURIComponent(id)}`),
    recognitionPolicy: () => get<RecognitionPolicy>('/recognition-policy').catch(nullWhenMissing),
    treaties: (filters) => get('/recognition-treaties', filters),
    treaty: (id) => get(`/recognition-treaties/${encodeURIComponent(id)}`),
    revocationFeed: (issuer) => get('/sovereign-revocation-feed', { issuer_sovereign_id: issuer }),
    recognitionGraph: () => get('/recognition-graph'),
    connectome: () => get('/connectome.json'),
    trustPath: (from, to) => get('/connectome/trust-path', { from, to }),
    atlas: () => get('/atlas.json'),
    verifyAttestation: (request) => post('/attestations/verify', request),
    verifyAttestationWithTreaty: (request) => post('/attestations/verify-with-treaty', request),
    verifyTreaty: (request) => post('/recognition-treaties/verify', request),
  };
}

type QueryParameters = { readonly [name: string]: string | undefined };

function queryOf(parameters: QueryParameters): Query {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, [String(value)]]));
}

function nullWhenMissing(error: unknown): null {
  const missing = error instanceof AuthorityError && error.status === 404;
  if (missing && error.code !== 'unreadable_answer') return null;
  throw error;
}
