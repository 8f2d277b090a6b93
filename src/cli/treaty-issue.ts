import type { JsonObject } from '../base/json/value.ts';
import type { TreatyRequest } from '../client/operator-trust.ts';
import { readJsonFile } from './json-file.ts';
import { type OperatorOptions, operatorClient } from './operator-connection.ts';
import { type RecordOptions, showRecord } from './record-output.ts';

interface IssueOptions extends OperatorOptions, RecordOptions {
  readonly key: readonly string[];
  readonly role?: readonly string[];
  readonly scope?: string;
  readonly validityHours?: number;
  readonly metadata?: JsonObject;
  readonly issuer?: string;
}

/** `treaty issue`. */
export async function runIssue(subject: string, options: IssueOptions): Promise<void> {
  const { key, validityHours, metadata, issuer } = options;
  const scope = await scopeOf(options);
  const treaty = await operatorClient(options).issueTreaty({
    subject_sovereign_id: subject,
    subject_public_keys: key,
    ...(scope && { scope }),
    ...(validityHours && { validity_hours: validityHours }),
    ...(metadata && { metadata }),
    ...(issuer !== undefined && { issuer_sovereign_id: issuer }),
  });
  const roles = treaty.scope.allowed_roles.join(', ') || 'any';
  showRecord(options, treaty, `Treaty ${treaty.treaty_id} is issued`, [
    `${treaty.issuer_sovereign_id} recognizes ${treaty.subject_sovereign_id}. Roles: ${roles}. Expires: ${treaty.expires_at}.`,
  ]);
}

/** The authority judges the members of the file. */
async function scopeOf({ role, scope }: IssueOptions): Promise<TreatyRequest['scope']> {
  if (role === undefined && scope === undefined) return undefined;
  const members = scope === undefined ? {} : await readJsonFile(scope);
  return { ...members, ...(role && { allowed_roles: [...role] }) };
}
