/** `node run`: keeps this node enrolled until a signal, or until its certificate is revoked. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { systemRuntime } from '../../base/runtime.ts';
import type { AgentStorage } from '../../client/agent-storage.ts';
import {
  type AgentEnd,
  type AgentEvent,
  type ChangedRecord,
  createNodeAgent,
} from '../../client/node-agent.ts';
import { successionText } from '../connection/profiles.ts';
import { CA_OPTION, httpFetch, saveAddress, URL_OPTION } from '../connection/server.ts';
import { type OptionsIn, option } from '../kernel/command.ts';
import { cureOf, EXIT, failure, onLocalFiles, outcomeOf } from '../kernel/errors.ts';
import { assertCanSave, systemCode } from '../kernel/files.ts';
import { duration } from '../kernel/options.ts';
import { printNotice, printResult } from '../kernel/output.ts';
import { stopSignal } from '../service/stop-request.ts';
import { type HostnameOptions, inviteTokenIn, reportedHostname, VALIDITY } from './enroll.ts';
import {
  hasNodeKey,
  makeNodeKey,
  PROOF,
  readCertificate,
  readHeldList,
  readNodeKey,
  readRecord,
  recordPath,
  writeRecord,
} from './folder.ts';
import { HEALTH } from './heartbeat.ts';
import { noticeDamaged, pinnedRootKey, type TrustOptions, unusableFolder } from './trust.ts';

export const RUN = [
  option('--token-file <file>', 'file with the invite token, needed until there is a certificate'),
  HEALTH,
  option(
    '--on-change <command>',
    'shell command to run after changes, whose names are its arguments, "$@": certificate, genesis, authority-keys, crl, policy',
  ),
  option(
    '--succession-spread <duration>',
    "renew within this time after the authority's key was replaced because it was compromised",
    { env: 'MESH_SUCCESSION_SPREAD', fallback: 600_000, shown: '10m', parse: duration },
  ),
  VALIDITY,
  URL_OPTION,
  CA_OPTION,
  PROOF,
] as const;

type RunOptions = OptionsIn<typeof RUN> & TrustOptions & HostnameOptions;

export async function runAgent(options: RunOptions): Promise<void> {
  const { nodeDir, url, ca, proof, status, tokenFile, validityHours, onChange, successionSpread } =
    options;
  const rootKey = await pinnedRootKey(options);
  const storage = onLocalFiles(() => folderStorage(nodeDir));
  const key = onLocalFiles(() => (hasNodeKey(nodeDir) ? readNodeKey : makeNodeKey)(nodeDir));
  const changes = onChange === undefined ? null : createChangeCommand(onChange);
  let isMember = existsSync(recordPath(nodeDir, 'certificate'));
  const agent = await createNodeAgent({
    url,
    fetch: httpFetch(ca),
    proof,
    key,
    rootKey,
    storage,
    status: () => status,
    successionSpreadMs: successionSpread,
    now: systemRuntime.now,
    random: () => systemRuntime.randomBytes(4).readUInt32LE() / 2 ** 32,
    ...(validityHours !== undefined && { validityHours }),
    ...reportedHostname(options),
    ...(tokenFile !== undefined && {
      token: () => (existsSync(tokenFile) ? inviteTokenIn(tokenFile) : null),
    }),
    onEvent(event) {
      report(event);
      if (event.type === 'damaged') noticeDamaged(nodeDir, event.record);
      if (event.type !== 'changed') return;
      if (event.record === 'certificate') {
        printNotice(`${isMember ? 'Renewed' : 'Joined'}: ${certificateText(nodeDir)}`);
        isMember = true;
        saveAddress(nodeDir, url);
      }
      changes?.note(event.record);
    },
  }).catch((error: unknown) => {
    throw unusableFolder(nodeDir, error);
  });
  const end = await agent.run(stopSignal());
  await changes?.settled();
  if (end.code === 'certificate_revoked') throw revoked(nodeDir, agent.state().cert_id, end);
  if (end.code !== 'stopped') {
    const cure = tokenFile === undefined ? NO_TOKEN : cureOf(end.code, end.message);
    throw failure(EXIT.refused, end.code, end.message, cure ?? `There is no file ${tokenFile}.`);
  }
  printResult(options, { ...agent.state(), ended: end }, ['Stopped.']);
}

const NO_TOKEN = 'Name the file with an invite token: --token-file.';

function revoked(nodeDir: string, cert_id: string | null, { code, message }: AgentEnd): Error {
  const entry = readHeldList(nodeDir)?.revoked_certificates.find(
    ({ certificate_id }) => certificate_id === cert_id,
  );
  const why = entry === undefined ? '' : `, ${entry.reason}, ${entry.revoked_at}`;
  const cure =
    'Its operators know why. To admit this machine again, join with a new key and a new invite, in an empty folder.';
  return failure(EXIT.refused, code, `${message}: certificate ${cert_id}${why}`, cure);
}

/** What was rejected last: the failure that it causes has the same sentence. */
let rejected = '';

function report(event: AgentEvent): void {
  if (event.type === 'succession') {
    printNotice(successionText(event.statement, event.isInForce));
  } else if (event.type === 'refused') {
    rejected = `The ${event.what} from the authority is rejected: ${event.problem}`;
    printNotice(rejected);
  } else if (event.type === 'failed') {
    const seconds = Math.ceil(event.retryInMs / 1000);
    const { cure = null } = event.error === null ? {} : outcomeOf(event.error);
    printNotice(
      event.problem === rejected
        ? `Trying again in ${seconds} s`
        : `${event.problem}; trying again in ${seconds} s${cure === null ? '' : `. ${cure}`}`,
    );
    rejected = '';
  } else if (event.type === 'recovered') {
    printNotice('The authority answers again');
  } else if (event.type === 'storage') {
    printNotice(
      event.problem === null
        ? 'The folder is writable again: all changes are stored'
        : `${event.problem}; this node keeps running, and stores changes once the folder is writable`,
    );
  }
}

function certificateText(nodeDir: string): string {
  const { cert_id, network_name, roles, expires_at } = readCertificate(nodeDir);
  const held = roles.join(', ') || 'no role';
  return `certificate ${cert_id} of network "${network_name}", ${held}, until ${expires_at}`;
}

/** Stores the records of an agent as files. Throws if a node that has not joined yet could not write them. */
export function folderStorage(folder: string): AgentStorage {
  if (!existsSync(recordPath(folder, 'certificate'))) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    assertCanSave(recordPath(folder, 'agent'), { overwrites: true });
  }
  return {
    read: (name) => readRecord(folder, name),
    write(name, text) {
      try {
        writeRecord(folder, name, text);
      } catch (error) {
        throw new Error(`${recordPath(folder, name)} cannot be written (${systemCode(error)})`);
      }
    },
  };
}

/** Later changes wait for a running command up to this time. */
const LONGEST_COMMAND_MS = 60_000;

function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL');
}

/** Runs a shell command with the names of the changed records as arguments, one run at a time. */
function createChangeCommand(command: string) {
  let changed = new Set<ChangedRecord>();
  let running: Promise<void> = Promise.resolve();
  let isScheduled = false;

  async function run(): Promise<void> {
    isScheduled = false;
    const names = [...changed];
    changed = new Set();
    await new Promise<void>((resolve) => {
      // In a group of its own, so that what it started ends with it.
      const child = spawn('/bin/sh', ['-c', command, 'mesh-na', ...names], {
        stdio: ['ignore', 'inherit', 'inherit'],
        detached: true,
      });
      const tooLate = setTimeout(() => endGroup(child), LONGEST_COMMAND_MS);
      child.once('error', (error) => {
        clearTimeout(tooLate);
        printNotice(`${command} could not be started: ${error.message}`);
        resolve();
      });
      child.once('exit', (code, signal) => {
        clearTimeout(tooLate);
        if (code !== 0) printNotice(`${command} exited with ${code ?? signal}`);
        resolve();
      });
    });
  }

  return {
    note(record: ChangedRecord): void {
      changed.add(record);
      if (isScheduled) return;
      isScheduled = true;
      running = running.then(run);
    },
    settled: () => running,
  };
}
