/**
 * Pages of the console, and their actions: changes that an operator asks for in a form, sees in full, confirms, and gets
 * an account of.
 */
import type { JsonObject } from '../base/json/value.ts';
import type { OperatorTier } from '../client/operator-client.ts';
import type { Html } from '../pages/ui/html.ts';
import type { AuditEvent } from '../protocol/rows/audit-event.ts';
import { type Context, hasTier } from './context.ts';

export interface Field {
  readonly name: string;
  readonly label: string;
  /** `id` is for ids and keys, which need room; `lines` for short ones; `pasted` for a document. */
  readonly kind: 'text' | 'id' | 'number' | 'select' | 'lines' | 'pasted' | 'hidden';
  /** Shown below the field. */
  readonly hint?: string;
  readonly isRequired?: boolean;
  /** The choices of a `select`: value and text. */
  readonly choices?: readonly (readonly [value: string, text: string])[];
}

/** A request that the operator's key will sign. */
export interface PlannedRequest {
  /** What it is about, such as the name of a node, for plans with many requests. */
  readonly subject?: string;
  /** Percent-encoded. */
  readonly path: string;
  readonly body: JsonObject;
}

/** What is shown before anything is signed. */
export interface Plan {
  /** The change in one sentence, such as "Revoke the certificate 5a1f6e0c." */
  readonly sentence: string;
  /** Sent in this order, each signed when it is sent. */
  readonly requests: readonly PlannedRequest[];
  /** What else changes: one sentence each, with numbers. */
  readonly effects: readonly string[];
  /** What has to be typed: the name of what ends, or how many things do. */
  readonly typed: string | null;
  /** What it touches, thing by thing. */
  readonly touched?: Html;
  /** The arguments of `mesh-na` that do the same. */
  readonly command: readonly string[];
  /** The audit entries that it causes. */
  readonly audited: readonly AuditEvent[];
  /** Whether the last request that was sent has done what this one is for; for plans with many requests. */
  isDone?(request: PlannedRequest, lastAnswer: JsonObject | null): boolean;
  /** Whether a request still applies, asked just before it is sent; for plans with many requests. */
  isStillMeant?(request: PlannedRequest): Promise<boolean>;
  /** Shows the last answer; as JSON by default. */
  answer?(answer: JsonObject): Html;
  /** Whether the answer has secrets: it is forgotten when the operator has taken them. */
  readonly isSecret?: boolean;
  /** Where to go afterward, such as `./nodes?batch=1`, if not to the page of the action. */
  readonly back?: string;
}

export interface Action {
  /** Names the action in URLs. */
  readonly name: string;
  /** The heading of the form, such as "Revoke a certificate". */
  readonly title: string;
  /** What the button or link says, such as "Revoke". */
  readonly label: string;
  /** The tier that the authority demands. */
  readonly tier: OperatorTier;
  /** Whether something ends that does not come back: its buttons are red. */
  readonly isDestructive?: boolean;
  readonly fields: readonly Field[];
  /** The heading of the form that is filled with these values; the title by default. */
  heading?(context: Context, form: URLSearchParams): Promise<string>;
  /** Says what would be sent for a filled form, and changes nothing. Throws a `FormProblem` for a wrong form. */
  plan(context: Context, form: URLSearchParams): Promise<Plan>;
}

export interface PageAction extends Action {
  /** The path of the page that offers it. */
  readonly page: string;
}

/** What is wrong with a form, in one sentence; the form is shown again as it was filled in. */
export class FormProblem extends Error {}

/** Actions that the key cannot carry out are not shown. */
export function isOffered(action: Action, context: Context): boolean {
  return !context.isReadOnly && hasTier(context, action.tier);
}

export interface PageContent {
  /** The title of the page unless given. */
  readonly title?: string;
  /** One sentence below the heading. */
  readonly lede?: string;
  readonly body: Html;
  /** The events after which the page fetches itself again; all that are logged from now on unless given. */
  readonly news?: string | null;
}

/** An answer that is sent while it is read, because it may be long or endless: a CSV file, events, a long page. */
export interface Stream {
  readonly path: string;
  /** Content type. */
  readonly type: string;
  /** For a page, of which the pieces are the body. */
  readonly title?: string;
  /** The name under which the browser saves it; absent for what a script reads. */
  readonly fileName?: string;
  /** Ends when the signal is aborted, because the browser has gone. */
  pieces(context: Context, query: URLSearchParams, signal: AbortSignal): AsyncIterable<string>;
}

export interface Page {
  /** One segment, such as `/nodes`: links between pages are relative. */
  readonly path: string;
  readonly title: string;
  readonly isInNavigation: boolean;
  /** Reads from the authority; an error becomes one line on the page. */
  show(context: Context, query: URLSearchParams): Promise<PageContent>;
  readonly actions?: readonly Action[];
  readonly streams?: readonly Stream[];
}

/** Pages that belong together. */
export interface PageGroup {
  readonly name: string;
  readonly pages: readonly Page[];
}

/** Pages are in the navigation unless they say otherwise. */
export function definePage(page: Omit<Page, 'isInNavigation'> & Partial<Page>): Page {
  return { isInNavigation: true, ...page };
}
