import type { PublishedDocument } from '../protocol/contract/documents.ts';

/** A rendered page, with the policy that allows only its own style and script. */
export interface HtmlPage {
  readonly document: PublishedDocument;
  readonly contentSecurityPolicy: string;
}
