/**
 * The network as a node agent knows it: genesis, revocation list and policy, each verified. None is replaced by one that
 * is older, differs under the same number, or belongs to another network. Rejected documents are reported, and the
 * current ones are kept.
 */
import type { VerifySignature } from '../base/crypto/primitives.ts';
import { parseJson } from '../base/json/parse.ts';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import type { Bulletin } from '../protocol/records/bulletin.ts';
import { type GenesisBlock, genesisDigest, readGenesisBlock } from '../protocol/records/genesis.ts';
import { type PolicyManifest, readPolicyManifest } from '../protocol/records/policy-manifest.ts';
import { instantOf } from '../protocol/records/record.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../protocol/records/revocation-list.ts';
import { entriesDigest } from '../protocol/records/revocation-list-delta.ts';
import type { AgentStorage } from './agent-storage.ts';
import { AuthorityError } from './authority-error.ts';
import { deltaProblem, genesisProblem, revocationListProblem } from './network-trust.ts';
import { createVerifier } from './offline.ts';
import type { PublicClient } from './public-client.ts';
import { portableSha256 } from './sha256.ts';

export type NetworkRecord = 'genesis' | 'crl' | 'policy';

export interface AgentNetworkOptions {
  readonly client: Pick<PublicClient, 'genesis' | 'crl' | 'crlSince' | 'policy'>;
  readonly storage: AgentStorage;
  readonly rootKey: string;
  readonly verify: VerifySignature;
  now(): number;
  onRefused(what: NetworkRecord | 'bulletin' | 'delta', problem: string): void;
}

export interface AgentNetwork {
  /** Null until first fetched. */
  genesis(): GenesisBlock | null;
  crl(): CertificateRevocationList | null;
  policy(): PolicyManifest | null;
  /** Fetches the documents that are still missing. Rejects when there is no answer. */
  complete(): Promise<void>;
  /** Fetches the documents that changed according to the bulletin. Rejects when there is no answer. */
  follow(bulletin: Bulletin): Promise<void>;
  /** Fetches the newest revocation list and says whether it has this certificate. */
  confirmsRevocation(certId: string): Promise<boolean>;
  isRevoked(certId: string): boolean;
}

export async function openAgentNetwork(options: AgentNetworkOptions): Promise<AgentNetwork> {
  const { client, storage, rootKey, verify, now, onRefused } = options;
  const verifier = createVerifier({ verify, now });
  let genesis = await held(storage, 'genesis', readGenesisBlock);
  let crl = await held(storage, 'crl', readCertificateRevocationList);
  let policy = await held(storage, 'policy', readPolicyManifest);
  assertOfOneNetwork();
  let revoked = idsOn(crl);
  let crlDigest = digestOf(crl);
  let heldDigest = genesis === null ? '' : digestOfGenesis(genesis);
  let refusedGenesis = '';
  let logSize = 0;
  /** When a newer list was last accepted, in milliseconds since the epoch. */
  let listTakenAt = Number.NEGATIVE_INFINITY;

  function assertOfOneNetwork(): void {
    if (genesis === null) return;
    if (genesis.root_public_key !== rootKey) {
      throw new Error(
        `The stored genesis is signed for root key ${genesis.root_public_key}, not ${rootKey}`,
      );
    }
    const problem = genesisProblem(genesis, { rootKey, genesis: null }, now(), verify);
    if (problem !== null) throw new Error(`The stored genesis is rejected: ${problem}`);
    const key = genesis.network_authority.public_key;
    if (crl !== null && verifier.revocationList(crl, key) === 'invalid_signature') {
      throw new Error('The stored revocation list does not belong to this network');
    }
    if (policy !== null && verifier.policy(policy, key) !== 'valid') {
      throw new Error('The stored policy does not belong to this network');
    }
  }

  async function keep(name: NetworkRecord, record: JsonObject): Promise<void> {
    await storage.write(name, `${jsonText(record)}\n`);
  }

  async function updateGenesis(): Promise<void> {
    const offered = readGenesisBlock(await client.genesis());
    const problem =
      offered === null
        ? 'it is malformed'
        : genesisProblem(offered, { rootKey, genesis }, now(), verify);
    if (offered === null || problem !== null) return onRefused('genesis', problem ?? '');
    const digest = digestOfGenesis(offered);
    if (digest === heldDigest) return;
    genesis = offered;
    heldDigest = digest;
    await keep('genesis', offered);
  }

  async function takeList(list: CertificateRevocationList, digest: string): Promise<void> {
    crl = list;
    crlDigest = digest;
    revoked = idsOn(list);
    listTakenAt = now();
    await keep('crl', list);
  }

  async function updateList(): Promise<void> {
    if (genesis === null || (await continueList())) return;
    const offered = readCertificateRevocationList(await client.crl());
    const problem =
      offered === null
        ? 'it is malformed'
        : revocationListProblem(offered, { genesis, held: crl }, now(), verify);
    if (offered === null || problem !== null) return onRefused('crl', problem ?? '');
    if (offered.sequence !== crl?.sequence) await takeList(offered, digestOf(offered));
  }

  /** Continues the list by a delta; false when the full list has to be fetched. */
  async function continueList(): Promise<boolean> {
    if (genesis === null || crl === null) return false;
    try {
      const delta = await client.crlSince(crl.sequence);
      const key = genesis.network_authority.public_key;
      const { reason, list } = verifier.revocationListDelta(delta, crl, key);
      const problem = deltaProblem(reason);
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
    if (genesis === null) return;
    const offered = readPolicyManifest(await client.policy());
    if (offered === null) return onRefused('policy', 'it is malformed');
    if (verifier.policy(offered, genesis.network_authority.public_key) !== 'valid') {
      return onRefused('policy', 'the authority of the genesis did not sign it');
    }
    if (wanted !== null && !isNamed(offered, wanted)) {
      if (isOfItsTime(offered, wanted)) return;
      return onRefused('policy', 'it is not the policy that the bulletin names');
    }
    if (jsonText(offered) === (policy === null ? '' : jsonText(policy))) return;
    policy = offered;
    await keep('policy', offered);
  }

  function bulletinProblem(bulletin: Bulletin, { network_name, network_authority }: GenesisBlock) {
    const reason = verifier.bulletin(bulletin, network_name, network_authority.public_key);
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

  async function complete(): Promise<void> {
    if (genesis === null) await updateGenesis();
    const isOver = crl !== null && now() > halfOf(crl);
    if (crl === null || isOver) await updateList();
    if (policy === null) await updatePolicy(null);
  }

  async function followGenesis(bulletin: Bulletin): Promise<void> {
    const { genesis_digest: offered } = bulletin;
    if (offered === refusedGenesis || offered === heldDigest) return;
    await updateGenesis();
    if (heldDigest !== offered) refusedGenesis = offered;
  }

  return {
    genesis: () => genesis,
    crl: () => crl,
    policy: () => policy,
    complete,
    async follow(bulletin) {
      // The bulletin may be signed by a new authority key that the root key delegated to.
      await followGenesis(bulletin);
      if (genesis === null) return;
      const problem = bulletinProblem(bulletin, genesis);
      if (problem !== null) return onRefused('bulletin', problem);
      // The bulletin is older than the list and has no news.
      if (bulletin.crl_sequence < (crl?.sequence ?? 0)) return;
      logSize = bulletin.log_size;
      if (bulletin.crl_sequence > (crl?.sequence ?? -1)) await updateList();
      const { policy_id } = bulletin;
      if (policy_id !== null && policy?.policy_id !== policy_id) await updatePolicy(bulletin);
      await complete();
    },
    async confirmsRevocation(certId) {
      if (!revoked.has(certId)) await updateList();
      return revoked.has(certId);
    },
    isRevoked: (certId) => revoked.has(certId),
  };
}

/** A bulletin may be a second old when it is sent [core-5-14], plus its travel time, so a newer list may arrive first. */
const LATE_BULLETIN_MS = 5000;

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

async function held<T>(
  storage: AgentStorage,
  name: NetworkRecord,
  read: (value: unknown) => T | null,
): Promise<T | null> {
  const text = await storage.read(name);
  if (text === null) return null;
  const record = read(valueIn(text));
  if (record !== null) return record;
  throw new Error(`The stored ${name} is damaged`);
}

function valueIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

function digestOfGenesis(genesis: GenesisBlock): string {
  return genesisDigest(genesis, portableSha256);
}

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
