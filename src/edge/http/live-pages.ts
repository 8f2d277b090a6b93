/**
 * Live pages: viewers are notified of every change of the underlying document, as a patch of the version before. Each
 * change is rendered once for any number of viewers.
 */

import type { LiveContent, LiveTopic } from '../../pages/live-content.ts';
import { patchBetween } from '../../pages/live-patch.ts';
import { LIVE_TOPICS } from '../../protocol/api/pages.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import type { DocumentCache } from '../../protocol/contract/publications.ts';

/** Renders the content of a page from its document; a promise if that takes long. */
export type RenderLive = (
  topic: LiveTopic,
  document: PublishedDocument,
) => LiveContent | Promise<LiveContent>;

/** The content of a page for one version of its document, and the first message of its viewers. */
interface Shown {
  readonly etag: string;
  readonly content: LiveContent;
  readonly first: Uint8Array;
}

/** Instead of a longer patch, viewers fetch the page, which is compressed and sent at their pace. */
const MOST_PATCH_CHARACTERS = 64 * 1024;

export function isLiveTopic(text: string): text is LiveTopic {
  return LIVE_TOPICS.some((topic) => topic === text);
}

/** `isWatched` is checked to avoid rendering without viewers. */
export function createLivePages(
  documents: DocumentCache,
  render: RenderLive,
  isWatched: (topic: LiveTopic) => boolean,
) {
  const contents = new Map<LiveTopic, Shown>();
  const rendering = new Map<LiveTopic, Promise<void>>();
  const listeners: ((topic: LiveTopic, message: Uint8Array) => void)[] = [];

  /** Renders the newest version; concurrent callers share one rendering. */
  function refresh(topic: LiveTopic): void | Promise<void> {
    const underWay = rendering.get(topic);
    if (underWay !== undefined) return underWay;
    const document = documents.latest(topic);
    if (document === undefined || document.etag === contents.get(topic)?.etag) return;
    const { etag } = document;
    const content = render(topic, document);
    if (!(content instanceof Promise)) return show(topic, etag, content);
    const shown = content
      .then((late) => show(topic, etag, late))
      .finally(() => rendering.delete(topic));
    rendering.set(topic, shown);
    // The document may have changed meanwhile.
    void shown.then(() => follow(topic));
    return shown;
  }

  function follow(topic: LiveTopic): void {
    if (isWatched(topic)) void refresh(topic);
  }

  function show(topic: LiveTopic, etag: string, after: LiveContent): void {
    const known = contents.get(topic);
    const before = known?.content;
    if (known !== undefined && before?.version === after.version) {
      contents.set(topic, { ...known, etag });
      return;
    }
    const first = bytesOf(versionMessage(topic, after));
    contents.set(topic, { etag, content: after, first });
    if (!isWatched(topic)) return;
    const message = bytesOf(patchMessage(topic, before, after));
    for (const listener of listeners) listener(topic, message);
  }

  documents.onChange((name) => {
    if (isLiveTopic(name)) follow(name);
  });

  return {
    /**
     * Calls back, at once if possible, with the first message for a viewer; null if there is no document. Later changes
     * build on it.
     */
    first(topic: LiveTopic, send: (message: Uint8Array | null) => void): void {
      const sendFirst = () => send(contents.get(topic)?.first ?? null);
      const refreshed = refresh(topic);
      if (refreshed === undefined) sendFirst();
      else void refreshed.then(sendFirst);
    },
    /** Calls back with the message for each change. */
    onChange(listener: (topic: LiveTopic, message: Uint8Array) => void): void {
      listeners.push(listener);
    },
  };
}

const bytesOf = (message: string): Uint8Array => Buffer.from(message);

/** A viewer with another version fetches the page. */
function versionMessage(topic: LiveTopic, { version }: LiveContent): string {
  return JSON.stringify({ topic, version });
}

function patchMessage(
  topic: LiveTopic,
  before: LiveContent | undefined,
  after: LiveContent,
): string {
  const patch = before === undefined ? null : patchBetween(before.markup, after.markup);
  if (before === undefined || patch === null) return versionMessage(topic, after);
  const operations = JSON.stringify(patch);
  if (operations.length > MOST_PATCH_CHARACTERS) return versionMessage(topic, after);
  const head = JSON.stringify({ topic, from: before.version, version: after.version });
  return `${head.slice(0, -1)},"patch":${operations}}`;
}
