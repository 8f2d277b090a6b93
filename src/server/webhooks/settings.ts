/** The configured webhooks [events-5]. No message repeats an address, because it may contain a secret. */
import { isIP } from 'node:net';
import { bareHost } from '../../base/bare-host.ts';
import { isPublicAddress } from './address.ts';

export interface WebhookSettings {
  readonly urls: readonly URL[];
  /** Whether webhooks may be on this machine or its private network, and may lack TLS. */
  readonly allowsPrivate: boolean;
  /** The index of the event after which a new webhook begins; null for the end of the log. */
  readonly after: number | null;
}

const MOST_WEBHOOKS = 10;
const MOST_CHARACTERS = 2048;

/** `label` names the setting as it was given. Throws a one-sentence error if a URL is not acceptable. */
export function webhookUrls(
  texts: readonly string[],
  { allowsPrivate }: Pick<WebhookSettings, 'allowsPrivate'>,
  label: string,
): readonly URL[] {
  if (texts.length > MOST_WEBHOOKS) {
    throw new Error(`${label} names more than ${MOST_WEBHOOKS} webhooks`);
  }
  const urls = texts.map((text, index) => {
    const problem = problemOf(text, allowsPrivate);
    if (problem === null) return new URL(text);
    throw new Error(`${label} ${problem}${texts.length > 1 ? ` (number ${index + 1})` : ''}`);
  });
  if (new Set(urls.map(String)).size < urls.length)
    throw new Error(`${label} names a webhook twice`);
  return urls;
}

function problemOf(text: string, allowsPrivate: boolean): string | null {
  if (text.length > MOST_CHARACTERS) return `is longer than ${MOST_CHARACTERS} characters`;
  if (!URL.canParse(text)) return 'is not a URL';
  const { protocol, username, password, hash, hostname } = new URL(text);
  if (protocol !== 'https:' && !(protocol === 'http:' && allowsPrivate)) {
    return 'must be an https URL, or http with MESH_WEBHOOK_PRIVATE=1';
  }
  if (username !== '' || password !== '') return 'must not contain a user name or password';
  if (hash !== '') return 'must not have a fragment, because it is never sent';
  const address = bareHost(hostname);
  if (isIP(address) !== 0 && !allowsPrivate && !isPublicAddress(address)) {
    return 'names a private address, which only MESH_WEBHOOK_PRIVATE=1 allows';
  }
  return null;
}
