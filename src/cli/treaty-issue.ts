import type { TreatyRequest } from '../client/operator-trust.ts';
import type { JsonObject } from '../json/value.ts';
import { readJsonFile, saveJsonFile } from './json-file.ts';
import { type OperatorOptions, operatorClient } from './operator-connection.ts';
import { printResult } from './output.ts';

interface IssueOptions extends OperatorOptions {
  readonly key: readonly string[];
  readonly role?: readonly string[];
  readonly scope?: string;
  readonly validityHours?: number;
  readonly metadata?: JsonObject;
  readonly issuer?: string;
  readonly out?: string;
}

/** `treaty issue`. */
export async function runIssue(subject: string, options: IssueOptions): Promise<void> {
  const { key, validityHours, metadata, issuer, out } = options;
  const scope = await scopeOf(options);
  const treaty = await operatorClient(options).issueTreaty({
    subject_sovereign_id: subject,
    subject_public_keys: key,
    ...(scope && { scope }),
    ...(validityHours && { validity_hours: validityHours }),
    ...(metadata && { metadata }),
    ...(issuer !== undefined && { issuer_sovereign_id: issuer }),
  });
  const made = `Treaty ${treaty.treaty_id} is issued`;
  if (out !== undefined) saveJsonFile(out, treaty, made);
  const roles = treaty.scope.allowed_roles.join(', ') || 'any';
  printResult(options, treaty, [
    `${made}${out === undefined ? '' : ` and saved in ${out}`}.`,
    `${treaty.issuer_sovereign_id} recognizes ${treaty.subject_sovereign_id}. Roles: ${roles}. Expires: ${treaty.expires_at}.`,
  ]);
}

/** The authority judges the members of the file. */
async function scopeOf({ role, scope }: IssueOptions): Promise<TreatyRequest['scope']> {
  if (role === undefined && scope === undefined) return undefined;
  const members = scope === undefined ? {} : await readJsonFile(scope);
  return { ...members, ...(role && { allowed_roles: [...role] }) };
}
