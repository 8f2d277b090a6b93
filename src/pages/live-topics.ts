/** What pages are live, and what the edge needs of their content. */

export const LIVE_TOPICS = ['dashboard', 'connectome'] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];

export interface LiveContent {
  readonly html: string;
  readonly version: string;
  /** What leads here from earlier content of the topic, as JSON; null when all of it changed. */
  patchFrom(earlier: LiveContent): string | null;
}
