/** Finds out locally why a proof was refused, because the authority never says which check failed. */

import { join } from 'node:path';
import { inWords } from '../../base/duration.ts';
import { readKeyText } from '../../base/keys/key-file.ts';
import type { AuthorityError } from '../../client/authority-error.ts';
import { readConfigFile } from '../../server/config/config-file.ts';
import { FILES } from '../../server/config/data-folder.ts';

/** Differences beyond this are reported; authorities tolerate a few minutes. */
const ODD_MS = 60_000;

export function wrongClock(error: AuthorityError, now: number): string | null {
  if (error.status !== 401 || error.answeredAt === null) return null;
  const ahead = now - error.answeredAt;
  if (Math.abs(ahead) < ODD_MS) return null;
  const by = inWords(Math.round(Math.abs(ahead) / 1000));
  const where = ahead > 0 ? 'ahead of' : 'behind';
  return `The clock of this machine is ${by} ${where} the clock of the authority: correct the wrong one.`;
}

export interface OperatorSignature {
  readonly keyId: string;
  readonly publicKey: string;
  /** Null when an agent signs. */
  readonly keyFile: string | null;
  readonly dataDir: string;
}

/** A command signs as one operator. */
let used: OperatorSignature | null = null;

export function noteSignature(signature: OperatorSignature): void {
  used = signature;
}

export function wrongOperatorKey({ code, message }: AuthorityError): string | null {
  if (code !== 'admin_auth_failed' || used === null) return null;
  const { keyId, publicKey, keyFile, dataDir } = used;
  const list = 'run mesh-na operator-key list with another key to see the usable ones';
  if (message === UNKNOWN) {
    return `The authority has no usable key ${keyId}: it is unknown or revoked. Correct --key-id; ${list}.`;
  }
  const named = keyFile === null ? null : idIn(keyFile);
  const what = keyFile === null ? 'The key of the agent' : `The key file ${keyFile}`;
  if (named !== null && named !== keyId) {
    return `${what} belongs to ${named}, not to ${keyId}: correct --key-file or --key-id.`;
  }
  const configured = configuredKey(dataDir, keyId);
  if (configured !== null && configured !== publicKey) {
    return `${what} does not match ${keyId}, whose public key in ${dataDir} is ${configured}: correct --key-file or --key-id.`;
  }
  return null;
}

const UNKNOWN = 'Unknown admin key';
const ID_LINE = /^# key id: (\S+)\s*$/m;

function idIn(keyFile: string): string | null {
  try {
    return ID_LINE.exec(readKeyText(keyFile))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Null if the operators are configured elsewhere, or the data folder is on another machine. */
function configuredKey(dataDir: string, keyId: string): string | null {
  try {
    const { operators } = readConfigFile(join(dataDir, FILES.config), false);
    return operators.find(({ key_id }) => key_id === keyId)?.public_key ?? null;
  } catch {
    return null;
  }
}
