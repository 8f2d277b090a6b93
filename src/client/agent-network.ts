/**
 * The network as a node agent knows it: its authority, revocation list and policy, each verified. None is replaced by one
 * that is older, differs under the same number, or belongs to another network. Rejected documents are reported, and the
 * current ones are kept.
 */
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import type { Bulletin } from '../protocol/records/bulletin.ts';
import { type PolicyManifest, readPolicyManifest } from '../protocol/records/policy-manifest.ts';
import { instantOf } from '../protocol/records/record.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../protocol/records/revocation-list.ts';
import { entriesDigest } from '../protocol/records/revocation-list-delta.ts';
import { type AgentAuthorityOptions, openAgentAuthority } from './agent-authority.ts';
import { AuthorityError } from './authority-error.ts';
import type { Authority } from './authority-signers.ts';
import { DELTA_PROBLEMS, isDistrusted, revocationListProblem } from './network-trust.ts';
import { createVerifier } from './offline.ts';
import type { PublicClient } from './public-client.ts';
import { parsed } from './received.ts';
import { portableSha256 } from './sha256.ts';

export type NetworkRecord = 'genesis' | 'authority-keys' | 'crl' | 'policy';

export interface AgentNetworkOptions extends AgentAuthorityOptions {
  readonly client: AgentAuthorityOptions['client'] &
    Pick<PublicClient, 'crl' | 'crlSince' | 'readPolicy'>;
  onRefused(what: NetworkRecord | 'bulletin' | 'delta', problem: string): void;
  onDamaged(what: NetworkRecord): void;
}

export async function openAgentNetwork(options: AgentNetworkOptions) {
  const { client, storage, verify, now, onRefused } = options;
  const verifier = createVerifier({ verify, now });
  const authority = await openAgentAuthority(options);
  let crl = await held('crl', readCertificateRevocationList);
  let policy = await held('policy', readPolicyManifest);
  assertOfOneNetwork();
  dropDistrusted();
  let revoked = idsOn(crl);
  let crlDigest = digestOf(crl);
  /** The authority key with which the policy was fetched last: each key signs it again. */
  let policyKey = policy === null ? null : signerOf(policy);
  /** When the genesis was last fetched because of a signature. */
  let lookedAt = Number.NEGATIVE_INFINITY;
  let logSize = 0;
  /** When a newer list was last accepted, in milliseconds since the epoch. */
  let listTakenAt = Number.NEGATIVE_INFINITY;

  /** Null for what is fetched again. */
  async function held<T>(
    name: 'crl' | 'policy',
    read: (value: unknown) => T | null,
  ): Promise<T | null> {
    const text = authority.isDamaged ? null : await storage.read(name);
    if (text === null) return null;
    const record = read(parsed(text));
    if (record === null) options.onDamaged(name);
    return record;
  }

  function assertOfOneNetwork(): void {
    const trust = authority.trust();
    if (trust === null) return;
    // The newest first, because a search tries at most 32.
    const keys = trust
      .keys()
      .map(({ public_key }) => public_key)
      .reverse();
    const anyKey = { signingNow: () => keys, signingAt: () => keys };
    if (crl !== null && verifier.revocationList(crl, anyKey) === 'invalid_signature') {
      throw new Error('The stored revocation list does not belong to this network');
    }
    if (policy !== null && verifier.policy(policy, anyKey) !== 'valid') {
      throw new Error('The stored policy does not belong to this network');
    }
  }

  function dropDistrusted(): void {
    const keys = authority.trust()?.keys() ?? [];
    if (crl !== null && isDistrusted(crl, keys, verify)) crl = null;
    if (policy !== null && isDistrusted(policy, keys, verify)) policy = null;
  }

  async function keep(name: NetworkRecord, record: JsonObject): Promise<void> {
    await storage.write(name, `${jsonText(record)}\n`);
  }

  async function takeList(list: CertificateRevocationList, digest: string): Promise<void> {
    crl = list;
    crlDigest = digest;
    revoked = idsOn(list);
    listTakenAt = now();
    await keep('crl', list);
  }

  async function updateList(): Promise<void> {
    const signers = authority.trust();
    if (signers === null || (await continueList(signers))) return;
    const offered = readCertificateRevocationList(await client.crl());
    const problem =
      offered && revocationListProblem(offered, { authority: signers, held: crl }, now(), verify);
    if (offered === null) return onRefused('crl', 'it is malformed');
    if (problem !== null) {
      const isSigned = verifier.revocationList(offered, signers) !== 'invalid_signature';
      return isSigned || !(await wasReplaced()) ? onRefused('crl', problem) : updateList();
    }
    if (offered.sequence !== crl?.sequence) await takeList(offered, digestOf(offered));
  }

  /** Continues the list by a delta; false when the full list has to be fetched. */
  async function continueList(signers: Authority): Promise<boolean> {
    if (crl === null) return false;
    try {
      const delta = await client.crlSince(crl.sequence);
      const { reason, list } = verifier.revocationListDelta(delta, crl, signers);
      if (reason === 'invalid_signature' && (await wasReplaced())) {
        return continueList(authority.trust() ?? signers);
      }
      const problem = DELTA_PROBLEMS[reason];
      if (problem !== null) onRefused('delta', problem);
      if (problem !== null || list === null) return false;
      if (list.sequence > crl.sequence) await takeList(list, delta.entries_digest);
      return true;
    } catch (error) {
      if (error instanceof AuthorityError && DELTA_REFUSALS.has(error.wireCode)) return false;
      throw error;
    }
  }

  async function updatePolicy(wanted: Bulletin | null): Promise<void> {
    const signers = authority.trust();
    if (signers === null) return;
    const offered = readPolicyManifest(await client.readPolicy());
    if (offered === null) return onRefused('policy', 'it is malformed');
    if (verifier.policy(offered, signers) !== 'valid') {
      if (await wasReplaced()) return updatePolicy(wanted);
      return onRefused('policy', 'the authority of the genesis did not sign it');
    }
    if (wanted !== null && !isNamed(offered, wanted)) {
      if (isOfItsTime(offered, wanted)) return;
      return onRefused('policy', 'it is not the policy that the bulletin names');
    }
    policyKey = authority.currentKey();
    if (jsonText(offered) === (policy === null ? '' : jsonText(policy))) return;
    policy = offered;
    await keep('policy', offered);
  }

  function bulletinProblem(bulletin: Bulletin, network_name: string, signers: Authority) {
    const reason = verifier.bulletin(bulletin, network_name, signers);
    if (reason !== 'valid') return `its authority is not that of ${network_name} (${reason})`;
    const sequence = crl?.sequence ?? 0;
    if (bulletin.crl_sequence < sequence && !isJustTaken()) {
      return `it names revocation list ${bulletin.crl_sequence}, but the stored one is ${sequence}`;
    }
    if (bulletin.crl_sequence === sequence && crl !== null && bulletin.crl_digest !== crlDigest) {
      return `its revocation list ${sequence} differs from the stored one`;
    }
    // A restored authority continues with a shorter log, but with a higher list sequence.
    const isOlder = bulletin.crl_sequence === sequence && bulletin.log_size < logSize;
    return isOlder ? 'it is older than one received before' : null;
  }

  function isJustTaken(): boolean {
    return Math.abs(now() - listTakenAt) <= LATE_BULLETIN_MS;
  }

  function signerOf(manifest: PolicyManifest): string | null {
    const key = authority.currentKey();
    return key !== null && verifier.policy(manifest, key) === 'valid' ? key : null;
  }

  async function complete(): Promise<void> {
    const isOver = crl !== null && now() > halfOf(crl);
    if (authority.genesis() === null) await authority.update();
    if (crl === null || isOver) await updateList();
    if (policy === null || policyKey !== authority.currentKey()) await updatePolicy(null);
  }

  async function followKeys(follow: () => Promise<void>): Promise<void> {
    const before = authority.currentKey();
    await follow();
    if (before !== null && before !== authority.currentKey()) dropDistrusted();
  }

  /** Whether the authority's key was replaced while the node was away; looks at the genesis. */
  async function wasReplaced(): Promise<boolean> {
    if (Math.abs(now() - lookedAt) <= LOOK_AGAIN_MS) return false;
    lookedAt = now();
    const before = authority.currentKey();
    await followKeys(authority.update);
    return before !== authority.currentKey();
  }

  return {
    authority: { ...authority, update: () => followKeys(authority.update) },
    /** Null until first fetched. */
    crl: (): CertificateRevocationList | null => crl,
    policy: (): PolicyManifest | null => policy,
    /** Fetches the documents that are still missing. Rejects when there is no answer. */
    complete,
    /** Fetches everything that a certificate is judged by. Rejects when there is no answer. */
    async refresh(): Promise<void> {
      await followKeys(authority.updateAll);
      await updateList();
    },
    /** Fetches the documents that changed according to the bulletin. Rejects when there is no answer. */
    async follow(bulletin: Bulletin): Promise<void> {
      // The bulletin may be signed by an authority key that is followed because of it.
      await followKeys(() => authority.follow(bulletin));
      const [genesis, signers] = [authority.genesis(), authority.trust()];
      if (genesis === null || signers === null) return;
      const problem = bulletinProblem(bulletin, genesis.network_name, signers);
      if (problem !== null) return onRefused('bulletin', problem);
      // The bulletin is older than the list and has no news.
      if (bulletin.crl_sequence < (crl?.sequence ?? 0)) return;
      logSize = bulletin.log_size;
      if (bulletin.crl_sequence > (crl?.sequence ?? -1)) await updateList();
      const { policy_id } = bulletin;
      if (policy_id !== null && policy?.policy_id !== policy_id) await updatePolicy(bulletin);
    },
    /** Fetches the newest revocation list and says whether it has this certificate. */
    async confirmsRevocation(certId: string): Promise<boolean> {
      if (!revoked.has(certId)) await updateList();
      return revoked.has(certId);
    },
    isRevoked: (certId: string): boolean => revoked.has(certId),
  };
}

/** A bulletin may be a second old when it is sent [core-5-14], plus its travel time, so a newer list may arrive first. */
const LATE_BULLETIN_MS = 5000;

/** Documents with a wrong signature cause a look at the genesis at most this often. */
const LOOK_AGAIN_MS = 600_000;

/** The active policy may be newer than the bulletin. */
function isNamed(offered: PolicyManifest, { policy_id, issued_at }: Bulletin): boolean {
  return offered.policy_id === policy_id || instantOf(offered.issued_at) > instantOf(issued_at);
}

/** The policy was published while the bulletin was signed. The next bulletin names it, so wait without reporting. */
function isOfItsTime(offered: PolicyManifest, { issued_at }: Bulletin): boolean {
  return instantOf(issued_at) - instantOf(offered.issued_at) <= LATE_BULLETIN_MS;
}

/** Reasons to reject a delta after which the full list is fetched. */
const DELTA_REFUSALS = new Set([
  'delta_unavailable',
  'since_ahead',
  'invalid_since',
  // From an authority that does not support deltas and answered with the full list.
  'unreadable_answer',
]);

function digestOf(crl: CertificateRevocationList | null): string {
  return crl === null ? '' : entriesDigest(crl.issuer, crl.revoked_certificates, portableSha256);
}

function idsOn(crl: CertificateRevocationList | null): ReadonlySet<string> {
  return new Set((crl?.revoked_certificates ?? []).map(({ certificate_id }) => certificate_id));
}

/** After half of its lifetime, the authority has a newer list. */
function halfOf({ issued_at, next_update }: CertificateRevocationList): number {
  return (instantOf(issued_at) + instantOf(next_update)) / 2;
}
