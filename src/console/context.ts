/** What pages and actions of the console work with: the authority, and who asks. */
import type { Runtime } from '../base/runtime.ts';
import type { OperatorClient, OperatorTier } from '../client/operator-client.ts';
import type { SigningOptions } from '../client/options.ts';
import type { PublicClient } from '../client/public-client.ts';
import type { Fleet, Posture } from '../protocol/rows/dashboard.ts';

/** What one look at the authority from this machine has found. */
export interface Check {
  /** Its name, such as `clock_skew`. */
  readonly check: string;
  readonly outcome: 'ok' | 'warning' | 'wrong' | 'unknown';
  /** A sentence without a final period. */
  readonly found: string;
  /** Null when there is nothing to do. */
  readonly cure: string | null;
}

/** How the console reaches the authority. The key stays with what signs: a file, or ssh-agent. */
export interface Connection {
  readonly url: string;
  readonly keyId: string;
  /** Base64 public key of the authority: what requests are signed for. */
  readonly audience: string;
  readonly publicClient: PublicClient;
  /** Looks at the authority from the outside. */
  checks(): Promise<readonly Check[]>;
  /** A client that signs with the operator's key; the options replace those of the connection. */
  operatorClient(options?: Partial<SigningOptions>): OperatorClient;
  /** What went wrong and what to do, in one sentence. */
  problemOf(error: unknown): Promise<string>;
  /** A command line of `mesh-na` for the same authority and key. */
  commandLine(words: readonly string[]): string;
}

export interface Context extends Connection {
  readonly client: OperatorClient;
  /** The name of the network; the host and port of the authority until that has answered. */
  readonly networkName: string;
  /** The tier of the operator's key; null until the authority has answered. */
  readonly tier: OperatorTier | null;
  /** The ids of all operator keys; empty until the authority has answered. */
  readonly operators: readonly string[];
  /** What the authority says of itself, as every page shows it; null without an answer. */
  readonly posture: Posture | null;
  /** How many nodes are how; null without an answer. */
  readonly fleet: Fleet | null;
  readonly isReadOnly: boolean;
  now(): number;
}

/** The tier of a key can change while the console runs. */
const KNOWN_FOR_MS = 60_000;

/** Returns the context of a request. Without an answer of the authority it is the last one that was known. */
export function contextSource(
  connection: Connection,
  isReadOnly: boolean,
  now: Runtime['now'],
): () => Promise<Context> {
  const client = connection.operatorClient();
  const { publicClient, keyId, url } = connection;
  let networkName: string | null = null;
  let tier: OperatorTier | null = null;
  let operators: readonly string[] = [];
  let askedAt = Number.NEGATIVE_INFINITY;

  async function learn(): Promise<void> {
    if (now() - askedAt < KNOWN_FOR_MS && tier !== null) return;
    const [genesis, { operator_keys: keys }] = await Promise.all([
      networkName === null ? publicClient.readGenesis() : null,
      client.listOperatorKeys(),
    ]);
    askedAt = now();
    networkName ??= genesis?.network_name ?? null;
    operators = keys.map(({ key_id: id }) => id);
    tier = keys.find(({ key_id }) => key_id === keyId)?.tier ?? null;
  }

  return async () => {
    // The page asks the authority too, and shows why there is no answer.
    const [dashboard] = await Promise.all([
      publicClient.readDashboard().catch(() => null),
      learn().catch(() => undefined),
    ]);
    return {
      ...connection,
      client,
      networkName: networkName ?? new URL(url).host,
      tier,
      operators,
      posture: dashboard?.posture ?? null,
      fleet: dashboard?.fleet ?? null,
      isReadOnly,
      now,
    };
  };
}

/** Whether the key may do what needs this tier. */
export function hasTier({ tier }: Pick<Context, 'tier'>, needed: OperatorTier): boolean {
  return tier === 'privileged' || tier === needed;
}
