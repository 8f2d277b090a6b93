/**
 * What is wrong, if anything: one table of rules over counts and times. The banner of the dashboard, `/metrics`,
 * alerts and `mesh-na doctor` all take it from here. Findings are public, so no rule names a node.
 */
import { formatInstant } from '../../base/timestamp.ts';
import type { PostureFinding, PostureUnknown } from '../../protocol/rows/posture.ts';

/** Instants are milliseconds since the epoch. */
export interface PostureFacts {
  readonly now: number;
  /** Whether state can be read and written. */
  readonly ready: boolean;
  /** Until when signed requests are refused because the state was restored; null when they are not. */
  readonly restoredUntil: number | null;
  /** Null before nodes are counted for the first time. */
  readonly fleet: FleetFacts | null;
  /** When the root key's delegation to the authority ends; null where that is not known. */
  readonly delegatedUntil: number | null;
  /** When the TLS certificate expires; null where a proxy speaks TLS, or nobody. */
  readonly tlsNotAfter: number | null;
  /** When the revocation list has to be replaced. */
  readonly listDueAt: number;
  /** Bytes that are free for state; null where that is not known. */
  readonly diskFree: number | null;
  /** Bytes free on that disk below which nothing new is enrolled; 0 where that never happens. */
  readonly minFree: number;
  /** The schedule of backups; null where there is none. */
  readonly backup: BackupFacts | null;
  /** Rows of the stored state, and pages, that are known to be damaged. */
  readonly damaged: number;
  readonly webhooks: readonly WebhookFacts[];
  /** Whether signatures of the authority can be had. */
  readonly signs: boolean;
  readonly operatorKeys: { readonly usable: number; readonly privileged: number };
  /** Failed authentications within the last hour. */
  readonly failures: { readonly operator: number; readonly node: number };
  readonly treaties: { readonly expired: number; readonly expiring_soon: number };
  readonly staleFeeds: number;
  readonly trustCycle: { readonly status: string; readonly freshness: string };
}

/** Nodes with a certificate in force that have reported at least once, and what is wrong with some of them. */
export interface FleetFacts {
  readonly expected: number;
  /**
   * Not heard of within the active-node window; null while some had no chance to be heard of, because the
   * authority itself began only then to listen.
   */
  readonly silent: number | null;
  /** When that is known at the latest. */
  readonly silentKnownFrom: number;
  /** Whose last report was of anything but health, also if they are silent since. */
  readonly unwell: number;
  /** Whose certificate soon expires and has not been renewed. */
  readonly lapsing: number;
  /** Whose last certificate has expired within the last thirty days. */
  readonly lapsed: number;
}

/** Times in milliseconds, instants since the epoch. */
export interface BackupFacts {
  /** Between two backups. */
  readonly every: number;
  /** When the newest verified backup was made; null before the first. */
  readonly verifiedAt: number | null;
  /** Since when the service watches. */
  readonly since: number;
}

/** A webhook, and how far the audit log was posted to it. Instants are milliseconds since the epoch. */
export interface WebhookFacts {
  /** Host and port of its address. */
  readonly host: string;
  /** The index of the last event that it took. */
  readonly delivered: number;
  /** Since when it takes nothing; null while it takes what it is sent. */
  readonly failingSince: number | null;
  /** When the first event was logged that it has yet to take; null when it has taken all that it was sent. */
  readonly waitingSince: number | null;
}

export type Severity = PostureFinding['severity'];

type Judged = Pick<PostureFinding, 'severity' | 'sentence'>;
type NotKnown = Omit<PostureUnknown, 'rule'>;

interface Rule {
  readonly name: string;
  /** Null when nothing is wrong. */
  judge(facts: PostureFacts): Judged | NotKnown | null;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A backup takes its time. */
const LEAST_PATIENCE = HOUR / 4;
const MEGABYTE = 1_048_576;
const LOW_DISK = 1024 * MEGABYTE;
const FULL_DISK = 256 * MEGABYTE;
/** More failures in an hour than a mistyped command or a node with a wrong clock makes. */
const MANY_FAILURES = { operator: 20, node: 200 };

export const POSTURE_RULES: readonly Rule[] = [
  rule('store', ({ ready }) => (ready ? null : action('The authority cannot reach its state.'))),
  rule('restored', ({ restoredUntil }) =>
    restoredUntil === null
      ? null
      : attention(
          `The state was restored: requests signed before ${formatInstant(restoredUntil)} are refused.`,
        ),
  ),
  rule('signer', ({ signs }) =>
    signs ? null : action('The signer does not sign: nothing is issued, renewed or revoked.'),
  ),
  rule('disk', ({ diskFree, minFree }) => {
    if (diskFree === null) return null;
    const sentence = `Megabytes left on the disk of the state: ${Math.floor(diskFree / MEGABYTE)}.`;
    if (diskFree < minFree) return action(`${sentence} Nothing new is enrolled.`);
    if (diskFree < FULL_DISK) return action(sentence);
    return diskFree < LOW_DISK ? attention(sentence) : null;
  }),
  rule('damage', ({ damaged }) =>
    damaged === 0 ? null : action(`Damage found in the stored state: ${damaged}.`),
  ),
  rule('backup', ({ backup, now }) => {
    if (backup === null) return null;
    const { every, verifiedAt, since } = backup;
    const late = now - (verifiedAt ?? since) - every;
    const patience = Math.max(every / 2, LEAST_PATIENCE);
    if (late <= patience) return null;
    const sentence =
      verifiedAt === null
        ? 'No scheduled backup was made so far.'
        : `Hours since the last verified backup: ${Math.floor((now - verifiedAt) / HOUR)}.`;
    return late > 4 * patience ? action(sentence) : attention(sentence);
  }),
  rule('webhooks', ({ webhooks, now }) => {
    const silences = webhooks.flatMap(({ failingSince }) =>
      failingSince === null || now - failingSince < HOUR / 4 ? [] : [now - failingSince],
    );
    if (silences.length === 0) return null;
    const sentence = `Webhooks that have taken no event for 15 minutes: ${silences.length} of ${webhooks.length}.`;
    return Math.max(...silences) >= DAY ? action(sentence) : attention(sentence);
  }),
  fleetRule('nodes_silent', ({ expected, silent, silentKnownFrom }) => {
    if (silent === null) return notKnown('Nodes that have fallen silent', silentKnownFrom);
    if (silent === 0) return null;
    const sentence = `Nodes that have fallen silent: ${silent} of ${expected}.`;
    return silent * 2 >= expected ? action(sentence) : attention(sentence);
  }),
  fleetRule('nodes_unwell', ({ expected, unwell }) => {
    if (unwell === 0) return null;
    const sentence = `Nodes that do not report themselves healthy: ${unwell} of ${expected}.`;
    return unwell * 2 >= expected ? action(sentence) : attention(sentence);
  }),
  fleetRule('certificates_lapsing', ({ lapsing }) =>
    lapsing === 0
      ? null
      : attention(`Nodes whose certificate expires soon and has not been renewed: ${lapsing}.`),
  ),
  fleetRule('certificates_lapsed', ({ lapsed }) =>
    lapsed === 0
      ? null
      : attention(`Nodes whose certificate has expired within thirty days: ${lapsed}.`),
  ),
  rule('delegation', ({ delegatedUntil, now }) =>
    ending(delegatedUntil, now, 14, 3, {
      ended: 'The delegation of the root key to the authority has ended.',
      within: (days) => `The delegation of the root key to the authority ends within ${days}.`,
    }),
  ),
  rule('tls', ({ tlsNotAfter, now }) =>
    ending(tlsNotAfter, now, 14, 3, {
      ended: 'The TLS certificate has expired.',
      within: (days) => `The TLS certificate expires within ${days}.`,
    }),
  ),
  rule('documents_late', ({ listDueAt, now }) =>
    listDueAt > now
      ? null
      : action('The revocation list should have been replaced by a newer one.'),
  ),
  rule('operator_keys', ({ operatorKeys: { usable, privileged } }) => {
    if (usable === 0) return action('No operator key is usable.');
    return privileged === 0 ? action('No privileged operator key is usable.') : null;
  }),
  rule('authentication', ({ failures: { operator, node } }) => {
    if (operator < MANY_FAILURES.operator && node < MANY_FAILURES.node) return null;
    return attention(`Failed authentications within an hour: ${operator + node}.`);
  }),
  rule('treaties_expired', ({ treaties: { expired } }) =>
    expired === 0 ? null : attention(`Treaties that have expired: ${expired}.`),
  ),
  rule('treaties_expiring', ({ treaties: { expiring_soon: soon } }) =>
    soon === 0 ? null : attention(`Treaties that expire within three days: ${soon}.`),
  ),
  rule('feeds_stale', ({ staleFeeds }) =>
    staleFeeds === 0
      ? null
      : attention(`Imported revocation feeds older than three days: ${staleFeeds}.`),
  ),
  rule('trust_cycle', ({ trustCycle: { status, freshness } }) => {
    if (status === 'failed') return action('The last trust cycle failed.');
    return freshness === 'stale'
      ? attention('The last trust cycle is more than two days old.')
      : null;
  }),
];

/** The findings, the gravest first, and the rules that cannot be judged yet. */
export function judgePosture(facts: PostureFacts) {
  const findings: PostureFinding[] = [];
  const unknown: PostureUnknown[] = [];
  for (const { name, judge } of POSTURE_RULES) {
    const found = judge(facts);
    if (found === null) continue;
    if ('known_from' in found) unknown.push({ rule: name, ...found });
    else findings.push({ rule: name, ...found });
  }
  return { findings: findings.toSorted((a, b) => gravity(b) - gravity(a)), unknown };
}

function gravity({ severity }: PostureFinding): number {
  return severity === 'action' ? 1 : 0;
}

function rule(name: string, judge: Rule['judge']): Rule {
  return { name, judge };
}

/** A rule over counted nodes. */
function fleetRule(name: string, judge: (fleet: FleetFacts) => ReturnType<Rule['judge']>): Rule {
  return rule(name, ({ fleet }) =>
    fleet === null ? { sentence: 'Nodes are being counted.', known_from: null } : judge(fleet),
  );
}

function notKnown(what: string, from: number): NotKnown {
  const known_from = formatInstant(from);
  return { sentence: `${what}: not known before ${known_from.slice(11, 16)} UTC.`, known_from };
}

function attention(sentence: string) {
  return { severity: 'attention', sentence } as const;
}

function action(sentence: string) {
  return { severity: 'action', sentence } as const;
}

interface Ending {
  readonly ended: string;
  within(days: string): string;
}

/** What ends needs attention some days before, and action a few days before. */
function ending(
  at: number | null,
  now: number,
  attentionDays: number,
  actionDays: number,
  words: Ending,
) {
  if (at === null) return null;
  const leftMs = at - now;
  if (leftMs <= 0) return action(words.ended);
  if (leftMs < actionDays * DAY) return action(words.within(`${actionDays} days`));
  if (leftMs < attentionDays * DAY) return attention(words.within(`${attentionDays} days`));
  return null;
}

/** First words of a report that speak of health, as nodes choose them. */
const WELL = new Set([
  ...['healthy', 'ok', 'okay', 'good', 'fine', 'well', 'up', 'ready', 'running', 'active'],
  ...['online', 'alive', 'idle', 'busy', 'serving', 'normal', 'joined', 'renewed', 'unknown', ''],
]);

/** Whether a node that reports this text is well; whatever is not known to be good counts as bad. */
export function reportsHealth(status: string): boolean {
  return WELL.has(/^\s*([a-z]*)/i.exec(status)?.[1]?.toLowerCase() ?? '');
}
