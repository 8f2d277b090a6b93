/** The kinds of requests that a fleet sends, their shares, and the signed record that it has verified. */
import { SHA256 } from '../../src/base/crypto/digest.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import type { Issuer } from '../../src/protocol/records/issuer.ts';
import {
  buildTrustEvidence,
  type TrustDecision,
  type TrustEvidence,
} from '../../src/protocol/records/trust-evidence.ts';
import {
  type FleetNode,
  getRequest,
  heartbeatRequest,
  type LoadRequest,
  newKey,
  nodesInTurn,
  postRequest,
  renewalRequest,
} from './requests.ts';

export const KINDS = ['heartbeat', 'renew', 'crl', 'verify'] as const;
export type Kind = (typeof KINDS)[number];

/** Shares by kind; only their ratio counts. */
export type Mix = { readonly [Name in Kind]?: number };

export interface MixedRequest {
  readonly kind: Kind;
  /** The number of the node that signed it; -1 for requests without a signature. */
  readonly node: number;
  readonly request: LoadRequest;
}

export interface MixOptions {
  readonly mix: Mix;
  /** Whether heartbeats ask for the bulletin. */
  readonly bulletins: boolean;
  /** The body of `verify`. */
  readonly evidence: string;
  readonly validityHours: number;
}

export const VERIFICATION_PATH = '/trust-evidence/verify';

/** Parses `heartbeat=95,renew=1`; null for other text. */
export function parseMix(text: string): Mix | null {
  const mix: { [name: string]: number } = {};
  for (const part of text.split(',')) {
    const [, name = '', share = ''] = /^(\w+)=(\d{1,6})$/.exec(part) ?? [];
    if (!KINDS.some((kind) => kind === name) || name in mix) return null;
    mix[name] = Number(share);
  }
  return Object.values(mix).some((share) => share > 0) ? mix : null;
}

export function mixText(mix: Mix): string {
  return KINDS.flatMap((kind) => (mix[kind] ? [`${kind}=${mix[kind]}`] : [])).join(',');
}

/** Returns the kinds in an order in which each one is spread evenly. */
export function kindsInTurn(mix: Mix): () => Kind {
  const shares = KINDS.map((kind) => ({ kind, share: mix[kind] ?? 0, owed: 0 }));
  const total = shares.reduce((sum, { share }) => sum + share, 0);
  return () => {
    for (const each of shares) each.owed += each.share;
    const chosen = shares.reduce((most, each) => (each.owed > most.owed ? each : most));
    chosen.owed -= total;
    return chosen.kind;
  };
}

/** Makes the requests of these nodes, which may be part of a fleet. */
export function mixedRequests(nodes: readonly FleetNode[], options: MixOptions) {
  const { mix, bulletins, evidence, validityHours } = options;
  const current = [...nodes];
  const nextKind = kindsInTurn(mix);
  // Renewals have turns of their own, so that they reach every node.
  const nextSender = nodesInTurn(nodes);
  const nextRenewer = nodesInTurn(nodes);
  const further = bulletins ? { bulletin: true } : {};
  const lifetime = { validity_hours: validityHours };
  const documents = {
    crl: getRequest('/crl'),
    verify: postRequest(VERIFICATION_PATH, evidence),
  };

  function signed(kind: 'heartbeat' | 'renew'): MixedRequest {
    const { index, signedAt } = kind === 'heartbeat' ? nextSender() : nextRenewer();
    const node = current[index] as FleetNode;
    const request =
      kind === 'heartbeat'
        ? heartbeatRequest(node, signedAt, further)
        : renewalRequest(node, lifetime, signedAt);
    return { kind, node: index, request };
  }

  return {
    next(): MixedRequest {
      const kind = nextKind();
      if (kind === 'heartbeat' || kind === 'renew') return signed(kind);
      return { kind, node: -1, request: documents[kind] };
    },
    /** From now on, the node uses this certificate. */
    renewed(index: number, certId: string): void {
      const node = current[index];
      // A session is that of one certificate.
      if (node !== undefined) current[index] = { key: node.key, certId };
    },
  };
}

const DAY = 86_400_000;

/** Dates records a day ahead, so that nothing expires during the run; no rule requires records from the past. */
export function issuerNamed(sovereignId: string): Issuer {
  const signer = newKey();
  const now = systemRuntime.now() + DAY;
  return {
    sovereignId,
    keyId: signer.publicKey,
    signer,
    sha256: SHA256,
    now,
    uuid: () => systemRuntime.uuid(),
  };
}

export function evidenceAbout(issuer: Issuer, target: string): TrustEvidence {
  const detail = 'a path of active treaties leads there';
  const decision: TrustDecision = {
    source_sovereign_id: issuer.sovereignId,
    target_sovereign_id: target,
    verdict: 'allow',
    reason: 'active_treaty_path',
    requested_roles: ['role:client'],
    trusted: true,
    hop_count: 1,
    signals: [{ code: 'active_treaty_path', severity: 'info', detail }],
    evaluated_at: '2026-01-15T12:00:00Z',
  };
  return buildTrustEvidence(issuer, decision, 'ab'.repeat(32));
}

/** The body of a request that verifies the evidence; the authority accepts it. */
export function verificationBody(issuer: Issuer, evidence: TrustEvidence): string {
  return jsonText({ evidence, issuer_public_keys: [issuer.signer.publicKey] });
}
