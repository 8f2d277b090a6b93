/**
 * Live pages: viewers learn of every change of the underlying document. What they are sent is made once for
 * each change, for any number of viewers: the difference for those that say which version they hold, the
 * whole content for others.
 */

import { documentText, type PublishedDocument } from '../contract/documents.ts';
import type { DocumentCache } from '../contract/publications.ts';

export const LIVE_PATH = '/live';

export const LIVE_TOPICS = ['dashboard', 'connectome'] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];

/** What a viewer wants to be sent. */
export const LIVE_FORMS = ['whole', 'patches'] as const;
export type LiveForm = (typeof LIVE_FORMS)[number];

export interface LiveContent {
  readonly html: string;
  readonly version: string;
  /** What leads here from earlier content of the topic, as JSON; null when all of it changed. */
  patchFrom(earlier: LiveContent): string | null;
}

/** Renders the content of a page from the JSON text of its document. */
export type LiveRenderers = Readonly<
  Record<LiveTopic, (json: string, networkName: string) => LiveContent>
>;

export interface LivePages {
  /** What a viewer is sent first; null while there is no document. */
  first(topic: LiveTopic, form: LiveForm): string | null;
  /** Calls back with what viewers are sent on a change. */
  onChange(listener: (topic: LiveTopic, form: LiveForm, message: string) => void): void;
}

/** Viewers fetch the page rather than a longer patch: then it comes compressed, and at their pace. */
const MOST_PATCH_CHARACTERS = 64 * 1024;

export function isLiveTopic(text: string): text is LiveTopic {
  return LIVE_TOPICS.some((topic) => topic === text);
}

/** `isWatched` avoids rendering without viewers. */
export function createLivePages(
  documents: DocumentCache,
  renderers: LiveRenderers,
  networkName: string,
  isWatched: (topic: LiveTopic, form: LiveForm) => boolean,
): LivePages {
  const contents = new Map<LiveTopic, { readonly etag: string; readonly content: LiveContent }>();
  const listeners: ((topic: LiveTopic, form: LiveForm, message: string) => void)[] = [];

  function contentOf(topic: LiveTopic, document: PublishedDocument): LiveContent {
    const { etag } = document;
    const known = contents.get(topic);
    if (known?.etag === etag) return known.content;
    const content = renderers[topic](documentText(document), networkName);
    contents.set(topic, { etag, content });
    return content;
  }

  documents.onChange((name, document) => {
    if (!isLiveTopic(name)) return;
    const forms = LIVE_FORMS.filter((form) => isWatched(name, form));
    if (forms.length === 0) return;
    const before = contents.get(name)?.content;
    const after = contentOf(name, document);
    if (before?.version === after.version) return;
    for (const form of forms) {
      const message =
        form === 'whole' ? wholeMessage(name, after) : patchMessage(name, before, after);
      for (const listener of listeners) listener(name, form, message);
    }
  });

  return {
    first(topic, form) {
      const document = documents.latest(topic);
      if (document === undefined) return null;
      const content = contentOf(topic, document);
      return form === 'whole' ? wholeMessage(topic, content) : versionMessage(topic, content);
    },
    onChange: (listener) => listeners.push(listener),
  };
}

function wholeMessage(topic: LiveTopic, { html }: LiveContent): string {
  return JSON.stringify({ topic, html });
}

/** A viewer that holds another version fetches the page. */
function versionMessage(topic: LiveTopic, { version }: LiveContent): string {
  return JSON.stringify({ topic, version });
}

function patchMessage(
  topic: LiveTopic,
  before: LiveContent | undefined,
  after: LiveContent,
): string {
  const patch = before === undefined ? null : after.patchFrom(before);
  if (before === undefined || patch === null || patch.length > MOST_PATCH_CHARACTERS) {
    return versionMessage(topic, after);
  }
  const head = JSON.stringify({ topic, from: before.version, version: after.version });
  return `${head.slice(0, -1)},"patch":${patch}}`;
}
