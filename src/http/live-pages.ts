/**
 * Live pages: viewers are sent the newest content whenever the underlying document changes. A change is
 * rendered once, for any number of viewers.
 */

import { documentText, type PublishedDocument } from '../contract/documents.ts';
import type { DocumentCache } from '../contract/publications.ts';

export const LIVE_PATH = '/live';

export const LIVE_TOPICS = ['dashboard', 'connectome'] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];

/** Renders the HTML of a page from the JSON text of its document. */
export type LiveRenderers = Readonly<
  Record<LiveTopic, (json: string, networkName: string) => string>
>;

export interface LivePages {
  /** The newest message for viewers of the topic; null while there is no document. */
  current(topic: LiveTopic): string | null;
  /** Calls back with every new message of a topic. */
  onChange(listener: (topic: LiveTopic, message: string) => void): void;
}

export function isLiveTopic(text: string): text is LiveTopic {
  return LIVE_TOPICS.some((topic) => topic === text);
}

/** `isWatched` avoids rendering without viewers. */
export function createLivePages(
  documents: DocumentCache,
  renderers: LiveRenderers,
  networkName: string,
  isWatched: (topic: LiveTopic) => boolean,
): LivePages {
  const messages = new Map<LiveTopic, { readonly etag: string; readonly text: string }>();
  const listeners: ((topic: LiveTopic, message: string) => void)[] = [];

  function messageOf(topic: LiveTopic, document: PublishedDocument): string {
    const { etag } = document;
    const known = messages.get(topic);
    if (known?.etag === etag) return known.text;
    const json = documentText(document);
    const text = JSON.stringify({ topic, html: renderers[topic](json, networkName) });
    messages.set(topic, { etag, text });
    return text;
  }

  documents.onChange((name, document) => {
    if (!isLiveTopic(name) || !isWatched(name)) return;
    const message = messageOf(name, document);
    for (const listener of listeners) listener(name, message);
  });

  return {
    current(topic) {
      const document = documents.latest(topic);
      return document === undefined ? null : messageOf(topic, document);
    },
    onChange: (listener) => listeners.push(listener),
  };
}
