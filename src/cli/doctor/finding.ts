/** The checks of `mesh-na doctor`, and their findings. */
import { counted } from '../../base/counts.ts';
import { DAY_MS } from '../../base/duration.ts';

/** Each check, and why it matters. */
export const CHECKS = {
  node_version: 'The native modules exist only for these versions',
  glibc: 'The native modules do not load with an older version',
  data_folder: 'It has the genesis, the keys and the state of the authority',
  configuration: 'The next start would fail, or use unintended settings',
  genesis: 'It defines the network, and nodes pin its root key',
  root_signature: 'Nodes reject a genesis that the root key did not sign',
  first_policy: 'The root key vouches for the first policy of the network',
  delegation: 'Nodes reject the authority once its delegation has expired',
  authority_key: 'Nothing that is signed with another key is accepted',
  succession: 'A key that takes over, or still signs, must be held by each instance',
  signer: 'Without it nothing is issued, renewed or revoked, and no start succeeds',
  key_modes: 'Anyone who can read a private key can sign with it',
  root_key: 'An intruder on this machine would own the network for good',
  operator_keys: 'Without a privileged key nothing can be revoked',
  clock: 'Validity and request freshness depend on the time',
  tls: 'Clients refuse to connect once the certificate is invalid',
  exposure: 'Invite tokens and signatures are sent over this connection',
  free_space: 'Joins are refused when space is low, and a full disk stops the service',
  open_files: 'Each connection needs an open file',
  holder: 'Only one process at a time may write the state',
  store: 'Nothing can be served without it, and an older state undoes later revocations',
  last_stop: 'Anything the last process had not stored is lost',
  rows: 'It is too late to find a damaged row when it is needed',
  head: 'It reveals a rolled-back state',
  backups: 'They are the only way to recover from the loss of the disk',
  webhooks: 'Receivers miss events',
  database: 'It stores everything that the authority has acknowledged',
  reachable: 'Nobody can enroll, renew or learn of a revocation',
  ready: 'It serves no requests until it is ready',
  network: 'Another authority or a man in the middle may be answering',
  crl: 'With a stale list, nodes accept revoked certificates or reject everyone',
  feed: 'Partners would accept revoked attestations',
  clock_skew: 'Requests with a wrong time are refused',
  public_url: 'Documents and pages show an address that clients cannot use',
  forwarded: 'Clients could fake their address, and thus evade limits and falsify the audit log',
  partners: 'What they revoke does not become known here',
  posture: 'The authority itself reports a problem',
  version: 'Commands and server may be incompatible',
} as const;

export type CheckName = keyof typeof CHECKS;

export const OUTCOMES = ['ok', 'warning', 'wrong', 'unknown'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Finding {
  readonly check: CheckName;
  readonly outcome: Outcome;
  /** A sentence without a final period, like all texts here. */
  readonly found: string;
  /** What to do; null when there is nothing to do. */
  readonly cure: string | null;
}

export function fine(check: CheckName, found: string): Finding {
  return { check, outcome: 'ok', found, cure: null };
}

export function warning(check: CheckName, found: string, cure: string): Finding {
  return { check, outcome: 'warning', found, cure };
}

export function wrong(check: CheckName, found: string, cure: string): Finding {
  return { check, outcome: 'wrong', found, cure };
}

/** A check that could not be made, and what would make it possible. */
export function unknown(check: CheckName, found: string, cure: string): Finding {
  return { check, outcome: 'unknown', found, cure };
}

/** Anything that expires needs attention two weeks before, as in the posture. */
export function ending(check: CheckName, what: string, end: number, now: number, cure: string) {
  const spelled = counted(Math.floor(Math.abs(end - now) / DAY_MS), 'day');
  if (end <= now) return wrong(check, `${what} ended ${spelled} ago`, cure);
  if (end - now < 14 * DAY_MS) return warning(check, `${what} ends in ${spelled}`, cure);
  return fine(check, `${what} ends in ${spelled}`);
}
