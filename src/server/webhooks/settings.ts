/** The configured webhooks [events-5]. No message repeats an address, because it may contain a secret. */
import { type Reach, urlProblem } from '../outbound/lookup.ts';

export interface WebhookSettings {
  readonly urls: readonly URL[];
  /** Whether webhooks may be on this machine or its private network, and may lack TLS. */
  readonly allowsPrivate: boolean;
  /** The index of the event after which a new webhook begins; null for the end of the log. */
  readonly after: number | null;
}

const MOST_WEBHOOKS = 10;
const MOST_CHARACTERS = 2048;

export function webhookReach(allowsPrivate: boolean): Reach {
  return { allowsPrivate, setting: 'MESH_WEBHOOK_PRIVATE=1' };
}

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
  const url = new URL(text);
  const { username, password, hash } = url;
  if (username !== '' || password !== '') return 'must not contain a user name or password';
  if (hash !== '') return 'must not have a fragment, because it is never sent';
  return urlProblem(url, webhookReach(allowsPrivate));
}
