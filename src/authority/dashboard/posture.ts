/**
 * Detects problems with a single table of rules over counts and times. The dashboard's banner, `/metrics`, alerts and
 * `mesh-na doctor` all use it. Findings are public, so no rule names a node.
 */
import { counted, countedOf } from '../../base/counts.ts';
import { DAY_MS, HOUR_MS } from '../../base/duration.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { AdoptionState } from '../../protocol/rows/adoption.ts';
import type { PostureFinding, PostureUnknown } from '../../protocol/rows/dashboard.ts';
import type { FleetFacts } from '../census.ts';
import type { BackupFacts, PartnerFacts, WebhookFacts } from '../host-status.ts';

/** Instants are in milliseconds since the epoch. */
export interface PostureFacts {
  readonly now: number;
  /** Whether state can be read and written. */
  readonly ready: boolean;
  /** When the refusal of signed requests after a restore ends; null if they are not refused. */
  readonly restoredUntil: number | null;
  /** Null until nodes have been counted for the first time. */
  readonly fleet: FleetFacts | null;
  /** When the root key's delegation to the authority ends; null if unknown. */
  readonly delegatedUntil: number | null;
  /** When the TLS certificate expires; null if TLS is not used, or is handled by a proxy. */
  readonly tlsNotAfter: number | null;
  /** The latest of the times that are recorded: lists, feeds, and what was recorded before the start. */
  readonly recordedUntil: number;
  /** When the revocation list must be replaced. */
  readonly listDueAt: number;
  /** Free bytes on the disk that holds the state; null if unknown. */
  readonly diskFree: number | null;
  /** Enrollment stops when the disk has fewer free bytes than this; 0 if it never stops. */
  readonly minFree: number;
  /** The backup schedule; null if there is none. */
  readonly backup: BackupFacts | null;
  readonly webhooks: readonly WebhookFacts[];
  readonly partners: ReadonlyMap<string, PartnerFacts>;
  /** Whether the authority's signer is available. */
  readonly signs: boolean;
  readonly operatorKeys: { readonly usable: number; readonly privileged: number };
  /** Failed authentications within the last hour. */
  readonly failures: { readonly operator: number; readonly node: number };
  readonly treaties: { readonly expired: number; readonly expiring_soon: number };
  readonly staleFeeds: number;
  /** Treaties that have not followed their subject to another key, and those of them that accept a stolen key. */
  readonly treatiesBehind: { readonly count: number; readonly acceptStolenKey: number };
  /** The change of the authority key; null if there was none. */
  readonly succession: SuccessionFacts | null;
  readonly trustCycle: { readonly status: string; readonly freshness: string };
  /** Since when what was counted has been so; null if nothing was, and by rule. */
  readonly countedSince: {
    readonly [Rule in 'treaties_expired' | 'treaties_expiring' | 'feeds_stale' | 'trust_cycle']:
      | number
      | null;
  };
}

/** Instants are in milliseconds since the epoch. */
export interface SuccessionFacts {
  readonly state: AdoptionState;
  readonly activatesAt: number;
  readonly overlapUntil: number;
  /** Nodes that reported within the active-node window, and how many of them have not followed; null until counted. */
  readonly nodes: { readonly active: number; readonly laggards: number } | null;
  /** When all nodes have had the time to report what they follow; null if they have. */
  readonly knownFrom: number | null;
}

/** Facts that are counted while the dashboard is built. */
export type CountedFacts = Pick<
  PostureFacts,
  'treaties' | 'treatiesBehind' | 'staleFeeds' | 'trustCycle' | 'countedSince'
>;

/** The facts before the first build of the dashboard. */
export const NOTHING_COUNTED: CountedFacts = {
  treaties: { expired: 0, expiring_soon: 0 },
  treatiesBehind: { count: 0, acceptStolenKey: 0 },
  staleFeeds: 0,
  trustCycle: { status: 'not_observed', freshness: 'none' },
  countedSince: {
    treaties_expired: null,
    treaties_expiring: null,
    feeds_stale: null,
    trust_cycle: null,
  },
};

interface Judged extends Pick<PostureFinding, 'severity' | 'sentence'> {
  /** Since when, in milliseconds since the epoch; null if the facts do not say. */
  readonly since: number | null;
}

export interface FoundProblem extends Judged {
  readonly rule: string;
}

type NotKnown = Omit<PostureUnknown, 'rule'>;

interface Rule {
  readonly name: string;
  /** Null if there is no problem. */
  judge(facts: PostureFacts): Judged | NotKnown | null;
}

/** The shortest time that a backup may be late without being reported, because a backup takes some time. */
const LEAST_PATIENCE = HOUR_MS / 4;
const MEGABYTE = 1_048_576;
const LOW_DISK = 1024 * MEGABYTE;
const FULL_DISK = 256 * MEGABYTE;
/** A staged key takes over within seconds of its time. */
const ACTIVATION_PATIENCE = HOUR_MS / 60;
/** Clocks of instances, and of those who sign, may differ by as much. */
const CLOCK_PATIENCE = HOUR_MS / 12;
/** More failures in an hour than a mistyped command or a node with a wrong clock would cause. */
const MANY_FAILURES = { operator: 20, node: 200 };

const HAVE = ['has', 'have'] as const;

export const POSTURE_RULES: readonly Rule[] = [
  rule('store', ({ ready }) => (ready ? null : action('The authority cannot reach its state.'))),
  rule('clock', ({ recordedUntil, now }) =>
    recordedUntil <= now + CLOCK_PATIENCE
      ? null
      : attention(
          `The clock is before ${formatInstant(recordedUntil)}, which is recorded here: it is behind, or was ahead.`,
        ),
  ),
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
    const sentence = `${counted(Math.floor(diskFree / MEGABYTE), 'megabyte is', 'megabytes are')} left on the disk of the state.`;
    if (diskFree < minFree) return action(`${sentence} Nothing new is enrolled.`);
    if (diskFree < FULL_DISK) return action(sentence);
    return diskFree < LOW_DISK ? attention(sentence) : null;
  }),
  rule('backup', ({ backup, now }) => {
    if (backup === null) return null;
    const { every, verifiedAt, since } = backup;
    const late = now - (verifiedAt ?? since) - every;
    const patience = Math.max(every / 2, LEAST_PATIENCE);
    if (late <= patience) return null;
    const sentence =
      verifiedAt === null
        ? 'No scheduled backup was made so far.'
        : `The last verified backup is ${counted(Math.floor((now - verifiedAt) / HOUR_MS), 'hour')} old.`;
    return (late > 4 * patience ? action : attention)(sentence, now - late);
  }),
  rule('webhooks', ({ webhooks, now }) => {
    const failing = webhooks.flatMap(({ failingSince }) =>
      failingSince === null || now - failingSince < HOUR_MS / 4 ? [] : [failingSince],
    );
    if (failing.length === 0) return null;
    const since = Math.min(...failing);
    const sentence = `${countedOf(failing.length, webhooks.length, 'webhook', HAVE)} taken no event for 15 minutes.`;
    return (now - since >= DAY_MS ? action : attention)(sentence, since);
  }),
  rule('partners', ({ partners, now }) => {
    const failing = [...partners.values()].flatMap(({ failingSince, problem }) => {
      const isFinding = problem?.isRefused || now - (failingSince ?? now) >= HOUR_MS / 4;
      return failingSince === null || !isFinding ? [] : [failingSince];
    });
    if (failing.length === 0) return null;
    const since = Math.min(...failing);
    const sentence = `The feed or keys of ${failing.length} of ${counted(partners.size, 'sovereign')} cannot be fetched.`;
    return (now - since >= DAY_MS ? action : attention)(sentence, since);
  }),
  fleetRule('nodes_silent', ({ expected, silent, silentKnownFrom, since }) => {
    if (silent === null) return notKnown('Nodes that have fallen silent', silentKnownFrom);
    if (silent === 0) return null;
    const sentence = `${countedOf(silent, expected, 'node', HAVE)} fallen silent.`;
    return (silent * 2 >= expected ? action : attention)(sentence, since.silent);
  }),
  fleetRule('nodes_unwell', ({ expected, unwell }) => {
    if (unwell === 0) return null;
    const sentence = `${countedOf(unwell, expected, 'node', ['does not report itself', 'do not report themselves'])} healthy.`;
    return unwell * 2 >= expected ? action(sentence) : attention(sentence);
  }),
  fleetRule('certificates_lapsing', ({ lapsing, since }) =>
    lapsing === 0
      ? null
      : attention(
          `${counted(lapsing, 'node has', 'nodes have')} not renewed a certificate that expires soon.`,
          since.lapsing,
        ),
  ),
  fleetRule('certificates_lapsed', ({ lapsed, since }) =>
    lapsed === 0
      ? null
      : attention(
          `${counted(lapsed, 'node has', 'nodes have')} let a certificate expire within thirty days.`,
          since.lapsed,
        ),
  ),
  rule('delegation', ({ delegatedUntil, now }) =>
    ending(delegatedUntil, now, 14, 3, {
      ended: 'The delegation of the root key to the authority has ended.',
      within: (days) => `The delegation of the root key to the authority ends within ${days}.`,
    }),
  ),
  rule('succession_due', ({ succession, now }) =>
    succession?.state !== 'staged' || now < succession.activatesAt + ACTIVATION_PATIENCE
      ? null
      : action(
          'The staged authority key should have taken over, but has not.',
          succession.activatesAt,
        ),
  ),
  rule('succession_laggards', ({ succession, now }) => {
    if (succession?.state !== 'overlap') return null;
    const left = succession.overlapUntil - now;
    if (left >= 3 * DAY_MS) return null;
    return left < DAY_MS ? laggards(succession, 1, action) : laggards(succession, 3, attention);
  }),
  rule('tls', ({ tlsNotAfter, now }) =>
    ending(tlsNotAfter, now, 14, 3, {
      ended: 'The TLS certificate has expired.',
      within: (days) => `The TLS certificate expires within ${days}.`,
    }),
  ),
  rule('documents_late', ({ listDueAt, now }) =>
    listDueAt > now
      ? null
      : action('The revocation list should have been replaced by a newer one.', listDueAt),
  ),
  rule('operator_keys', ({ operatorKeys: { usable, privileged } }) => {
    if (usable === 0) return action('No operator key is usable.');
    return privileged === 0 ? action('No privileged operator key is usable.') : null;
  }),
  rule('authentication', ({ failures: { operator, node } }) => {
    if (operator < MANY_FAILURES.operator && node < MANY_FAILURES.node) return null;
    return attention(
      `${counted(operator + node, 'authentication has', 'authentications have')} failed within an hour.`,
    );
  }),
  rule('treaties_expired', ({ treaties: { expired }, countedSince }) =>
    expired === 0
      ? null
      : attention(
          `${counted(expired, 'treaty has', 'treaties have')} expired.`,
          countedSince.treaties_expired,
        ),
  ),
  rule('treaties_expiring', ({ treaties: { expiring_soon: soon }, countedSince }) =>
    soon === 0
      ? null
      : attention(
          `${counted(soon, 'treaty expires', 'treaties expire')} within three days.`,
          countedSince.treaties_expiring,
        ),
  ),
  rule('treaties_behind', ({ treatiesBehind: { count, acceptStolenKey } }) => {
    if (acceptStolenKey > 0) {
      return action(
        `${counted(acceptStolenKey, 'treaty accepts', 'treaties accept')} a stolen key.`,
      );
    }
    return count === 0
      ? null
      : attention(
          `${counted(count, 'treaty has', 'treaties have')} not followed the subject to its new key.`,
        );
  }),
  rule('feeds_stale', ({ staleFeeds, countedSince }) =>
    staleFeeds === 0
      ? null
      : attention(
          `${counted(staleFeeds, 'imported revocation feed is', 'imported revocation feeds are')} older than three days.`,
          countedSince.feeds_stale,
        ),
  ),
  rule('trust_cycle', ({ trustCycle: { status, freshness }, countedSince }) => {
    const since = countedSince.trust_cycle;
    if (status === 'failed') return action('The last trust cycle failed.', since);
    return freshness === 'stale'
      ? attention('The last trust cycle is more than two days old.', since)
      : null;
  }),
];

/** The findings, most serious first, and the rules that cannot be evaluated yet. */
export function judgePosture(facts: PostureFacts) {
  const findings: FoundProblem[] = [];
  const unknown: PostureUnknown[] = [];
  for (const { name, judge } of POSTURE_RULES) {
    const found = judge(facts);
    if (found === null) continue;
    if ('known_from' in found) unknown.push({ rule: name, ...found });
    else findings.push({ rule: name, ...found });
  }
  return { findings: findings.toSorted((a, b) => gravity(b) - gravity(a)), unknown };
}

function gravity({ severity }: FoundProblem): number {
  return severity === 'action' ? 1 : 0;
}

function rule(name: string, judge: Rule['judge']): Rule {
  return { name, judge };
}

/** A rule over counted nodes. */
function fleetRule(name: string, judge: (fleet: FleetFacts) => ReturnType<Rule['judge']>): Rule {
  return rule(name, ({ fleet }) => (fleet === null ? NODES_BEING_COUNTED : judge(fleet)));
}

const NODES_BEING_COUNTED: NotKnown = { sentence: 'Nodes are being counted.', known_from: null };

function notKnown(what: string, from: number): NotKnown {
  const known_from = formatInstant(from);
  return { sentence: `${what}: not known before ${known_from.slice(11, 16)} UTC.`, known_from };
}

/** The overlap of two authority keys ends within `days`. */
function laggards(
  { nodes, knownFrom, overlapUntil }: SuccessionFacts,
  days: number,
  judge: typeof attention | typeof action,
): Judged | NotKnown | null {
  if (nodes === null) return NODES_BEING_COUNTED;
  if (knownFrom !== null) {
    return notKnown('Nodes that have not followed the new authority key', knownFrom);
  }
  if (nodes.laggards === 0) return null;
  const within = days === 1 ? 'a day' : `${days} days`;
  return judge(
    `The old authority key stops signing within ${within}, and ${countedOf(nodes.laggards, nodes.active, 'active node', HAVE)} not followed the new one.`,
    overlapUntil - 3 * DAY_MS,
  );
}

function attention(sentence: string, since: number | null = null): Judged {
  return { severity: 'attention', sentence, since };
}

function action(sentence: string, since: number | null = null): Judged {
  return { severity: 'action', sentence, since };
}

interface Ending {
  readonly ended: string;
  within(days: string): string;
}

/** An expiration needs attention `attentionDays` in advance, and action `actionDays` in advance. */
function ending(
  at: number | null,
  now: number,
  attentionDays: number,
  actionDays: number,
  words: Ending,
) {
  if (at === null) return null;
  const leftMs = at - now;
  const since = at - attentionDays * DAY_MS;
  if (leftMs <= 0) return action(words.ended, since);
  if (leftMs < actionDays * DAY_MS) return action(words.within(`${actionDays} days`), since);
  if (leftMs < attentionDays * DAY_MS)
    return attention(words.within(`${attentionDays} days`), since);
  return null;
}
