/**
 * Checks on the machine of the authority, also whether there is a recent, sound backup, and whether each webhook can be
 * reached. They change nothing, post nothing and do not disturb a running service.
 */

import { once } from 'node:events';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { bareHost } from '../../base/bare-host.ts';
import { counted } from '../../base/counts.ts';
import { signerFromSeed, verifySignature } from '../../base/crypto/ed25519.ts';
import { HOUR_MS } from '../../base/duration.ts';
import { messageOf } from '../../base/error-message.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { KeySource } from '../../base/signer/authority-signer.ts';
import { connectSigner } from '../../base/signer/connection.ts';
import { CHALLENGE_BYTES } from '../../base/signer/protocol.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { verifyBackup } from '../../maintenance/backup/check-state.ts';
import { readBackup } from '../../maintenance/backup/file.ts';
import { createKeptFiles } from '../../maintenance/backup/kept-files.ts';
import { type ListedBackup, listBackups } from '../../maintenance/backup/list.ts';
import type { BackupSettings } from '../../maintenance/backup/schedule.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { createLookup, PrivateAddress } from '../../server/outbound/lookup.ts';
import { type WebhookSettings, webhookReach } from '../../server/webhooks/settings.ts';
import { openLmdbSource } from '../../store/lmdb/source.ts';
import type { DatabaseSetting } from '../../store/open.ts';
import { openPostgresqlSource } from '../../store/postgresql/source.ts';
import { readSafety, type Safety } from '../../store/postgresql/status.ts';
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
import { checkSettings, type SettingsOptions } from './settings.ts';
import { checkState } from './state.ts';

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

interface LocalOptions extends Omit<SettingsOptions, 'now'> {
  readonly machine: Machine;
  /** Whether to read every row, and the newest backup. */
  readonly deep: boolean;
}

/** The genesis is null when the folder has none. */
export async function checkLocal(options: LocalOptions) {
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

const PATIENCE_MS = 5000;

/** Returns one finding per webhook. */
function checkWebhooks({ urls, allowsPrivate }: WebhookSettings): Promise<Finding[]> {
  const lookup = createLookup(webhookReach(allowsPrivate));
  return Promise.all(
    urls.map(async (url) => {
      const socket = connectTo(url, lookup);
      try {
        const signal = AbortSignal.timeout(PATIENCE_MS);
        await once(socket, url.protocol === 'https:' ? 'secureConnect' : 'connect', { signal });
        return fine('webhooks', `${url.host} is reachable`);
      } catch (cause) {
        return judge(url.host, cause as NodeJS.ErrnoException);
      } finally {
        socket.destroy();
      }
    }),
  );
}

function connectTo(
  { protocol, hostname, port }: URL,
  lookup: ReturnType<typeof createLookup>,
): Socket {
  const host = bareHost(hostname);
  const isTls = protocol === 'https:';
  const place = { host, port: Number(port) || (isTls ? 443 : 80), lookup };
  const named = isIP(host) === 0 && { servername: host };
  const socket = isTls ? connectTls({ ...place, ...named }) : connectTcp(place);
  // The abandoned socket may emit another error.
  return socket.on('error', () => undefined);
}

function judge(host: string, cause: NodeJS.ErrnoException): Finding {
  if (cause instanceof PrivateAddress) {
    const cure = 'Use a public address, or set MESH_WEBHOOK_PRIVATE=1';
    return wrong('webhooks', `${host} resolves to a private address`, cure);
  }
  const { code = cause.name } = cause;
  if (NAMELESS.has(code))
    return wrong('webhooks', `${host} cannot be resolved (${code})`, 'Correct the host name');
  const cure = 'Check that it is running, and that Node.js accepts its certificate';
  const problem = cause.name === 'AbortError' ? 'no answer' : code;
  return warning('webhooks', `${host} is unreachable (${problem})`, cure);
}

const NAMELESS: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_NONAME']);

interface BackupOptions {
  /** Null when no folder is configured. */
  readonly settings: BackupSettings | null;
  readonly genesis: GenesisBlock;
  /** Whether to read the newest backup completely. */
  readonly deep: boolean;
  readonly now: number;
}

const MAKE = 'Run mesh-na backup create, and check why the service creates none';

async function checkBackups(options: BackupOptions): Promise<Finding> {
  const { settings } = options;
  if (settings === null) {
    return unknown('backups', 'No backup folder is configured', 'Set --backup-to');
  }
  try {
    return await checkFolder(settings, options);
  } catch (cause) {
    return wrong('backups', messageOf(cause), 'Set --backup-to to the folder of the backups');
  }
}

async function checkFolder(
  { folder, every }: BackupSettings,
  { genesis, deep, now }: BackupOptions,
): Promise<Finding> {
  const listed = await listBackups(folder, verifySignature);
  const newest = listed
    .flatMap((backup) => ownBackup(backup, genesis))
    .toSorted((a, b) => b.madeAt - a.madeAt)[0];
  const problem = deep && newest !== undefined ? await problemOf(join(folder, newest.name)) : null;
  if (problem !== null) {
    return wrong('backups', `The newest backup, ${newest?.name}, is damaged: ${problem}`, MAKE);
  }
  // The name of a scheduled backup shows its age, even when it is encrypted.
  const named = await createKeptFiles(folder, genesis).newest();
  const madeAt = Math.max(newest?.madeAt ?? 0, named ?? 0);
  if (madeAt === 0) return nothingKnown(folder, listed);
  if (madeAt > now + HOUR_MS) {
    const found = `The newest backup is dated ${formatInstant(madeAt)}, ahead of this clock`;
    return warning('backups', found, 'Set the clock of this machine, or of the one that made it');
  }
  const found = `The newest backup is ${counted(Math.floor((now - madeAt) / HOUR_MS), 'hour')} old`;
  return now - madeAt < 2 * every ? fine('backups', found) : warning('backups', found, MAKE);
}

function ownBackup({ name, content }: ListedBackup, genesis: GenesisBlock) {
  if (typeof content === 'string') return [];
  if (content.network.root_public_key !== genesis.root_public_key) return [];
  return [{ name, madeAt: instantOf(content.created_at) }];
}

function nothingKnown(folder: string, listed: readonly ListedBackup[]): Finding {
  const encrypted = listed.filter(({ content }) => content === 'encrypted').length;
  if (encrypted === 0) return wrong('backups', `${folder} has no backup of this network`, MAKE);
  return unknown(
    'backups',
    `${folder} has ${counted(encrypted, 'encrypted backup')}, whose age and content cannot be checked`,
    'Run mesh-na backup verify with the identity that decrypts them',
  );
}

async function problemOf(path: string): Promise<string | null> {
  try {
    await verifyBackup(await readBackup(path, []), verifySignature);
    return null;
  } catch (cause) {
    return messageOf(cause);
  }
}
