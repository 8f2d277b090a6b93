/** What `mesh-na doctor` checks, and what it says of each check. */

/** Each check with the reason why it matters. */
export const CHECKS = {
  node_version: 'The parts in native code exist for these versions alone',
  glibc: 'The parts in native code do not load with an older one',
  data_folder: 'Anyone who can write there can become the authority',
  configuration: 'The next start is refused, or is not what was meant',
  genesis: 'It says which network this is, and nodes pin its root key',
  root_signature: 'Nodes refuse a genesis that the root key has not signed',
  first_policy: 'The root key vouches for the rules that the network begins with',
  delegation: 'Nodes refuse the authority once the root key no longer vouches for it',
  authority_key: 'With another key, nothing that it signs is accepted',
  signer: 'Without it nothing is issued, renewed or revoked, and no start succeeds',
  key_modes: 'Anyone who reads a private key can sign in its place',
  root_key: 'A thief of this machine would own the network for good',
  operator_keys: 'Without a privileged key nothing can be revoked',
  clock: 'Times decide what is valid, and which requests are fresh',
  tls: 'Clients refuse to connect once it is not valid',
  exposure: 'Invite tokens and signatures travel along there',
  free_space: 'Newcomers are refused when little is left, and a full disk stops the service',
  open_files: 'Each connection needs one',
  holder: 'One process at a time writes the state',
  store: 'Without it nothing is served, and an older one un-revokes what was revoked since',
  last_stop: 'What the last process had not stored is lost',
  rows: 'A damaged row is found too late when it is needed',
  head: 'It shows when an older copy of the state was put back',
  backups: 'What is lost with the disk can only come from there',
  webhooks: 'What happens does not reach those who wait for it',
  database: 'It keeps what the authority has acknowledged',
  reachable: 'Nobody can enroll, renew or learn of a revocation',
  ready: 'Nothing is decided while it is not ready',
  network: 'Another authority answers there, or somebody in between',
  crl: 'Nodes accept what is revoked, or refuse everyone when the list is stale',
  feed: 'Partners accept attestations that are revoked',
  clock_skew: 'Requests with another time are refused',
  public_url: 'Documents and pages name an address that others cannot use',
  forwarded: 'A client could choose its own address, and so evade limits and forge the audit log',
  posture: 'The authority itself says that something is wrong',
  version: 'Commands and server may not understand each other',
} as const;

export type CheckName = keyof typeof CHECKS;

export const OUTCOMES = ['ok', 'warning', 'wrong', 'unknown'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Finding {
  readonly check: CheckName;
  readonly outcome: Outcome;
  /** A sentence without its period, as all texts here. */
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

/** What could not be checked, and what would allow it. */
export function unknown(check: CheckName, found: string, cure: string): Finding {
  return { check, outcome: 'unknown', found, cure };
}

const DAY = 86_400_000;

/** What ends needs attention two weeks before, as the posture says. */
export function ending(check: CheckName, what: string, end: number, now: number, cure: string) {
  const days = Math.floor(Math.abs(end - now) / DAY);
  const spelled = days === 1 ? '1 day' : `${days} days`;
  if (end <= now) return wrong(check, `${what} ended ${spelled} ago`, cure);
  if (end - now < 14 * DAY) return warning(check, `${what} ends in ${spelled}`, cure);
  return fine(check, `${what} ends in ${spelled}`);
}
