/** What this machine knows of why a proof was refused; the authority itself never says which check failed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuthorityError } from '../client/authority-error.ts';
import { readConfigFile } from '../server/config/config-file.ts';
import { FILES } from '../server/config/data-folder.ts';
import { inWords } from './duration.ts';

/** As good as clocks of machines have to be; authorities tolerate some minutes. */
const ODD_MS = 60_000;

export function wrongClock(error: AuthorityError, now: number): string | null {
  if (error.status !== 401 || error.answeredAt === null) return null;
  const ahead = now - error.answeredAt;
  if (Math.abs(ahead) < ODD_MS) return null;
  const by = inWords(Math.round(Math.abs(ahead) / 1000));
  const where = ahead > 0 ? 'ahead of' : 'behind';
  return `The clock of this machine is ${by} ${where} that of the authority: set the wrong one right.`;
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
  const list = 'mesh-na operator-key list, signed with another key, shows those that are usable';
  if (message === UNKNOWN) {
    return `The authority has no usable key ${keyId}: it never had it, or switched it off. Correct --key-id; ${list}.`;
  }
  const named = keyFile === null ? null : idIn(keyFile);
  const what = keyFile === null ? 'The key of the agent' : `The key file ${keyFile}`;
  if (named !== null && named !== keyId) {
    return `${what} is that of ${named}, not of ${keyId}: correct --key-file or --key-id.`;
  }
  const configured = configuredKey(dataDir, keyId);
  if (configured !== null && configured !== publicKey) {
    return `${what} is not that of ${keyId}, whose public key in ${dataDir} is ${configured}: correct --key-file or --key-id.`;
  }
  return null;
}

const UNKNOWN = 'Unknown admin key';
const ID_LINE = /^# key id: (\S+)\s*$/m;

function idIn(keyFile: string): string | null {
  try {
    return ID_LINE.exec(readFileSync(keyFile, 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** The operators of the authority may be configured elsewhere, or its folder may be on another machine. */
function configuredKey(dataDir: string, keyId: string): string | null {
  try {
    const { operators } = readConfigFile(join(dataDir, FILES.config), false);
    return operators.find(({ key_id }) => key_id === keyId)?.public_key ?? null;
  } catch {
    return null;
  }
}
