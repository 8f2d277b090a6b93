/** The content of a live page, with a version that identifies what a viewer has. */
import { sha256Hex } from '../base/crypto/digest.ts';
import type { Html } from './html.ts';
import { patchBetween } from './live-patch.ts';

export const LIVE_TOPICS = ['dashboard', 'connectome'] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];

export interface LiveContent {
  readonly html: string;
  readonly version: string;
  /** The JSON patch from earlier content of the topic; null when everything changed. */
  patchFrom(earlier: LiveContent): string | null;
}

export class LivePageContent implements LiveContent {
  readonly version: string;
  readonly markup: Html;

  constructor(markup: Html) {
    this.markup = markup;
    this.version = sha256Hex(markup.text).slice(0, 32);
  }

  get html(): string {
    return this.markup.text;
  }

  patchFrom(earlier: this): string | null {
    const patch = patchBetween(earlier.markup, this.markup);
    return patch === null ? null : JSON.stringify(patch);
  }
}
