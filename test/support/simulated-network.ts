/**
 * An authority on a real store with a manual clock, called directly instead of over HTTP, which simulates years of a
 * network in minutes. Proofs count as verified; everything after them is real.
 */

import { openAuthority } from '../../src/authority/open.ts';
import { SEED_BYTES, signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import { type Runtime, systemRuntime } from '../../src/base/runtime.ts';
import { createAuthoritySigner, heldHere } from '../../src/base/signer/authority-signer.ts';
import type {
  Answer,
  CallInput,
  CallOf,
  OperatorCallName,
  Prepared,
} from '../../src/protocol/contract/calls.ts';
import type { OperatorClaim } from '../../src/protocol/contract/claims.ts';
import { createDocumentPublisher } from '../../src/protocol/contract/documents.ts';
import { soleSigner } from '../../src/protocol/records/signed-record.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { unsignedGenesis } from './unsigned-genesis.ts';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

export interface SimulatedNode {
  readonly publicKey: string;
  readonly certId: string;
}

export interface SimulatedCounts {
  readonly active_nodes: number;
  readonly issued_certificates: number;
  readonly revoked_certificates: number;
  readonly nonce_windows: number;
  readonly subjects: { readonly [kind: string]: number };
  readonly removed_subjects: { readonly [kind: string]: number };
}

export interface SimulatedClock {
  now: number;
  elapsed: number;
}

const OPERATOR = 'ops';
const SIGNER = signerFromSeed(Buffer.alloc(SEED_BYTES, 1));

/** Opens the network in the folder, which may belong to an earlier one with the same clock. */
export async function openSimulatedNetwork(folder: string, clock: SimulatedClock) {
  const runtime: Runtime = {
    ...systemRuntime,
    now: () => clock.now,
    elapsed: () => clock.elapsed,
  };
  const authority = await openAuthority({
    settings: {
      networkName: 'simulated',
      networkVersion: 'v0.1',
      activeWindow: 300_000,
      renewalGrace: null,
      refuseForeignIssuers: false,
      commitWithinAgreement: true,
      singleRefusals: null,
      genesis: unsignedGenesis('simulated', SIGNER.publicKey),
      firstPolicy: null,
    },
    operators: new Map([[OPERATOR, { tier: 'privileged', publicKey: '' }]]),
    clockTolerance: 300_000,
    flushInterval: 1000,
    seen: null,
    retention: {
      certificate: 365 * DAY,
      renewedCertificate: DAY,
      invite: 30 * DAY,
      agent: 30 * DAY,
    },
    signer: createAuthoritySigner(
      heldHere(() => [SIGNER]),
      soleSigner(SIGNER),
    ),
    runtime,
    store: await openLmdbStore(folder),
    publisher: createDocumentPublisher(),
    log: () => undefined,
    countRefusal: () => undefined,
    fatal(where, cause) {
      throw new Error(where, { cause });
    },
  });

  function operator(): OperatorClaim {
    return {
      keyId: OPERATOR,
      signedAt: systemRuntime.now(),
      nonce: systemRuntime.uuid(),
      verdict: 'valid',
      signatureVersion: 2,
      scope: '',
      remoteAddr: '192.0.2.1',
      identity: null,
    };
  }

  function claim(publicKey: string) {
    return {
      publicKey,
      signedAt: clock.now,
      nonce: systemRuntime.uuid(),
      verdict: 'valid',
      remoteAddr: '192.0.2.2',
      identity: null,
    } as const;
  }

  /** The answer as it would be served; throws if it is a refusal. */
  async function answered<T>(call: ReturnType<typeof authority.call>): Promise<T> {
    const answer = await call;
    if (!answer.ok) throw new Error(answer.refusal);
    return JSON.parse(answer.json) as T;
  }

  function order<Name extends OperatorCallName>(
    name: Name,
    value: CallInput<Name>,
  ): Answer | Promise<Answer> {
    const given = { operator: operator(), input: { ok: true, value } };
    return authority.call(name, given as CallOf<Name>);
  }

  async function readCounts(): Promise<SimulatedCounts> {
    return answered<SimulatedCounts>(authority.call('readCounts', null));
  }

  return {
    advance(milliseconds: number): void {
      clock.now += milliseconds;
      clock.elapsed += milliseconds;
    },
    async invite(count: number): Promise<string[]> {
      const value = {
        roles: ['role:client'],
        max_validity_hours: 168,
        token_expiry_hours: 24,
        recipient_public_key: null,
        count,
        batch: null,
        name: null,
        labels: null,
      };
      const { tokens } = await answered<{ tokens: { token_id: string }[] }>(
        order('createInvites', value),
      );
      return tokens.map(({ token_id }) => token_id);
    },
    async join(inviteToken: string): Promise<SimulatedNode> {
      const publicKey = systemRuntime.randomBytes(32).toString('base64');
      const given = {
        node: claim(publicKey),
        invite_token: inviteToken,
        validity_hours: 168,
        hostname: null,
      };
      const { cert_id: certId } = await answered<{ cert_id: string }>(
        authority.call('join', given),
      );
      return { publicKey, certId };
    },
    async renew({ publicKey, certId }: SimulatedNode): Promise<SimulatedNode> {
      const given = { node: claim(publicKey), cert_id: certId, validity_hours: 168, roles: null };
      const { cert_id } = await answered<{ cert_id: string }>(authority.call('renew', given));
      return { publicKey, certId: cert_id };
    },
    async beat({ publicKey, certId }: SimulatedNode): Promise<void> {
      await answered(
        authority.call('heartbeat', {
          node: claim(publicKey),
          cert_id: certId,
          status: 'healthy',
          bulletin: false,
          authority_keys_digest: null,
        }),
      );
    },
    async revoke({ certId }: SimulatedNode): Promise<void> {
      const reason = 'unspecified';
      await answered(
        order('revokeCertificate', { cert_id: certId, node_public_key: null, reason }),
      );
    },
    async importFeed(value: Prepared['importFeed']): Promise<void> {
      await answered(order('importFeed', value));
    },
    /** Decides at once what an operator orders. */
    order,
    flush: authority.flush,
    sweep: authority.sweep,
    /** Sweeps until every subject was visited. */
    async sweepAll(): Promise<void> {
      const { subjects } = await readCounts();
      const all = Object.values(subjects).reduce((sum, count) => sum + count, 0);
      for (let swept = 0; swept <= all; swept += 250) await authority.sweep();
    },
    readCounts,
    clockSet: authority.clockSet,
    close: authority.close,
  };
}
