/** What was acknowledged to clients, and what instances say about it afterward. */
import assert from 'node:assert/strict';
import { sha256Hex } from '../../src/base/crypto/digest.ts';
import type { TestAuthority } from '../support/authority.ts';
import { operate, outcome, type Received } from '../support/requests.ts';

/** A list that was read, and since when it may be outdated; null if it was served as current. */
export interface SeenList {
  readonly text: string;
  readonly staleSince: number | null;
}

export interface Ledger {
  /** Fingerprints of acknowledged invites. */
  readonly invites: Set<string>;
  /** Certificate ids, each with the key of the node that obtained it by joining or renewing. */
  readonly certificates: Map<string, string>;
  /** Certificate ids, each with the time when its revocation was acknowledged, in milliseconds since the epoch. */
  readonly revoked: Map<string, number>;
  /** Attestation ids, each with whether its revocation was acknowledged. */
  readonly attestations: Map<string, boolean>;
  /** Ids of operator keys that were revoked. */
  readonly keysOff: Set<string>;
  /** Every violation, as a sentence. */
  readonly violations: Set<string>;
  /** How many lists were served as possibly outdated. */
  staleLists: number;
  /** How many documents were read right after a change was acknowledged. */
  documents: number;
  /**
   * Call before requesting a list; the returned function checks the answer. `source` is the instance that receives the
   * request, or null if a balancer chooses one, because a change that is not acknowledged yet may be visible at one
   * instance before another.
   */
  expectList(source: string | null): (seen: SeenList) => void;
}

interface RevocationList {
  readonly sequence: number;
  readonly revoked_certificates: readonly { readonly certificate_id: string }[];
}

export function createLedger(): Ledger {
  const contents = new Map<number, string>();
  const revoked = new Map<string, number>();
  const violations = new Set<string>();
  /** The newest list that each instance has served as current. */
  const newest = new Map<string, number>();
  const ledger: Ledger = {
    invites: new Set(),
    certificates: new Map(),
    revoked,
    attestations: new Map(),
    keysOff: new Set(),
    violations,
    staleLists: 0,
    documents: 0,
    expectList(source) {
      const before = new Map(revoked);
      return ({ text, staleSince }) => {
        const list = JSON.parse(text) as RevocationList;
        const listed = new Set(list.revoked_certificates.map((one) => one.certificate_id));
        for (const [id, at] of before) {
          const isDue = staleSince === null || at < staleSince;
          if (isDue && !listed.has(id)) violations.add(`stale: ${id} is not in the list`);
        }
        const digest = sha256Hex(text);
        const known = contents.get(list.sequence) ?? digest;
        if (known !== digest) violations.add(`two lists have sequence ${list.sequence}`);
        contents.set(list.sequence, digest);
        if (staleSince !== null) {
          ledger.staleLists += 1;
          return;
        }
        if (source === null) return;
        const last = newest.get(source) ?? 0;
        if (list.sequence < last) {
          violations.add(`stale: list ${list.sequence} was served after list ${last}`);
        }
        newest.set(source, Math.max(last, list.sequence));
      };
    },
  };
  return ledger;
}

/** Compares everything with what one instance reports; call while no requests are in flight. */
export async function audit(ledger: Ledger, na: TestAuthority): Promise<void> {
  const { invites, certificates, attestations, keysOff, violations } = ledger;
  const judgeList = ledger.expectList(na.url);
  const [invited, certified, attested, keys, list] = await Promise.all([
    rows(na, '/admin/invites', 'invites'),
    rows(na, '/admin/certificates', 'certificates'),
    rows(na, '/attestations', 'attestations'),
    rows(na, '/admin/operator-keys', 'operator_keys'),
    operate(na, '/crl', {}, { method: 'GET' }),
  ]);

  compare('invite', invites, idsOf(invited, 'token_fingerprint'));
  compare('certificate', new Set(certificates.keys()), idsOf(certified, 'cert_id'));
  const attestationIds = attested.map((row) => (row.attestation as Row).attestation_id);
  compare('attestation', new Set(attestations.keys()), attestationIds.map(String));
  for (const [index, row] of attested.entries()) {
    if (attestations.get(String(attestationIds[index])) === true && row.status !== 'revoked') {
      violations.add(`lost: the revocation of attestation ${attestationIds[index]}`);
    }
  }
  const off = new Set(
    idsOf(
      keys.filter((row) => row.status === 'revoked'),
      'key_id',
    ),
  );
  for (const id of keysOff) if (!off.has(id)) violations.add(`lost: operator key ${id} is usable`);
  assert.equal(outcome(list), '200');
  judgeList({ text: list.text, staleSince: staleSinceOf(list) });

  /** Everything acknowledged must be there once, and nothing that was never acknowledged. */
  function compare(what: string, acknowledged: ReadonlySet<string>, found: readonly string[]) {
    const distinct = new Set(found);
    if (distinct.size < found.length) violations.add(`twice: an ${what} is listed twice`);
    for (const id of acknowledged) if (!distinct.has(id)) violations.add(`lost: ${what} ${id}`);
    for (const id of distinct) {
      if (!acknowledged.has(id)) violations.add(`twice: ${what} ${id} was made without an answer`);
    }
  }
}

type Row = Readonly<Record<string, unknown>>;

async function rows(na: TestAuthority, path: string, member: string): Promise<readonly Row[]> {
  const answer = await operate(na, path, {}, { method: 'GET' });
  assert.equal(outcome(answer), '200', path);
  return answer.body[member] as readonly Row[];
}

function idsOf(found: readonly Row[], member: string): string[] {
  return found.map((row) => String(row[member]));
}

/** Since when the answer may be outdated, in milliseconds since the epoch. */
export function staleSinceOf({ headers }: Received): number | null {
  const given = headers.get('x-mesh-stale-since');
  return given === null ? null : Date.parse(given);
}
