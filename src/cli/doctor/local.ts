/** Checks on the machine of the authority. They change nothing and do not disturb a running service. */

import { signerFromSeed, verifySignature } from '../../base/crypto/ed25519.ts';
import { messageOf } from '../../base/error-message.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { KeySource } from '../../base/signer/authority-signer.ts';
import { connectSigner } from '../../base/signer/connection.ts';
import { CHALLENGE_BYTES } from '../../base/signer/protocol.ts';
import { openLmdbSource } from '../../store/lmdb/source.ts';
import type { DatabaseSetting } from '../../store/open.ts';
import { openPostgresqlSource } from '../../store/postgresql/source.ts';
import { readSafety, type Safety } from '../../store/postgresql/status.ts';
import { checkBackups } from './backups.ts';
import { type Finding, fine, unknown, warning, wrong } from './finding.ts';
import {
  checkHolder,
  checkOpenFiles,
  checkPrograms,
  checkSpace,
  type Holder,
  holderOf,
  type Machine,
} from './machine.ts';
import { checkSettings, type Settings, type SettingsOptions } from './settings.ts';
import { checkState } from './state.ts';
import { checkWebhooks } from './webhooks.ts';

const CURE =
  'Start mesh-na signer there with the key of the authority, accessible to the user or group of the service';

/** The keys that the service would hold, and what the signer is found to be if there is one. */
async function checkSigner(source: KeySource, publicKey: string) {
  if (source.kind === 'seeds') {
    const held = source.seeds.map((seed) => signerFromSeed(Buffer.from(seed)).publicKey);
    return { held, findings: [] };
  }
  const at = `The signer at unix:${source.path}`;
  try {
    const connection = await connectSigner({
      path: source.path,
      publicKeys: [publicKey],
      verify: verifySignature,
      nonce: () => systemRuntime.randomBytes(CHALLENGE_BYTES),
    });
    connection.end('the check is done');
    const held = connection.publicKeys;
    return { held, findings: [fine('signer', `${at} signs with the key of the authority`)] };
  } catch (cause) {
    const finding = wrong('signer', `${at} does not sign: ${messageOf(cause)}`, CURE);
    return { held: null, findings: [finding] };
  }
}

export interface LocalOptions extends Omit<SettingsOptions, 'now'> {
  readonly machine: Machine;
  /** Whether to read every row, and the newest backup. */
  readonly deep: boolean;
}

export interface LocalReport {
  /** Null when the folder has none. */
  readonly genesis: Settings['genesis'];
  readonly findings: readonly Finding[];
}

export async function checkLocal(options: LocalOptions): Promise<LocalReport> {
  const { machine, deep } = options;
  const settings = checkSettings({ ...options, now: machine.now() });
  const { genesis, config, dataDir } = settings;
  const findings = [...checkPrograms(machine), ...settings.findings];
  if (genesis === null || config === null) {
    const cure = 'Correct the settings first';
    return { genesis, findings: [...findings, unknown('store', 'The state was not opened', cure)] };
  }
  const { database } = config;
  const keys = await checkSigner(config.keySource(), config.publicKey);
  findings.push(...keys.findings);
  const settled = database === null ? null : await readDatabase(database);
  const holder = settled === null ? holderOf(dataDir) : settled.holder;
  const state = await checkState({
    dataDir,
    genesis,
    held: keys.held,
    headFiles: config.heads.paths,
    isInDatabase: database !== null,
    holder,
    deep,
    now: machine.now(),
    open: () =>
      database === null ? openLmdbSource(dataDir) : openPostgresqlSource(database.address()),
  });
  // The state knows more than the file.
  if (state.some(isFirstPolicy)) findings.splice(findings.findIndex(isFirstPolicy), 1);
  findings.push(
    await checkSpace(machine, dataDir, config.minFree),
    checkOpenFiles(machine, holder),
    checkHolder(holder),
    ...(settled === null ? [] : [settled.finding]),
    ...state,
    await checkBackups({ settings: config.backups, genesis, deep, now: machine.now() }),
    ...(await checkWebhooks(config.webhooks)),
  );
  return { genesis, findings };
}

function isFirstPolicy({ check }: Finding): boolean {
  return check === 'first_policy';
}

async function readDatabase({ address }: DatabaseSetting) {
  try {
    const safety = await readSafety(address());
    const { active } = safety;
    const holder: Holder | null = active === null ? null : { pid: null, shown: active };
    return { finding: judgeSafety(safety), holder };
  } catch (cause) {
    const cure = 'Make sure that it is running, and that this user has access';
    return { finding: wrong('database', messageOf(cause), cure), holder: null };
  }
}

export function judgeSafety(safety: Omit<Safety, 'active'>): Finding {
  const { place, full_page_writes, synchronous_commit, synchronous_standby_names } = safety;
  if (full_page_writes !== 'on') {
    const found = `The database at ${place} has full_page_writes=${full_page_writes}`;
    return wrong(
      'database',
      found,
      'Turn it on: otherwise a crash of the machine can corrupt pages',
    );
  }
  if (synchronous_standby_names !== '' && synchronous_commit === 'local') {
    const found = `The database at ${place} does not wait for its configured standbys`;
    return warning('database', found, 'Set synchronous_commit=on');
  }
  return fine('database', `${place}, synchronous_commit=${synchronous_commit}`);
}
