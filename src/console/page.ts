/** Pages of the console. */
import type { Html } from '../pages/ui/html.ts';
import type { Action } from './action.ts';
import type { Context } from './context.ts';

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

export interface PageDefinition<Model> {
  /** One segment, such as `/nodes`: links between pages are relative. */
  readonly path: string;
  readonly title: string;
  /** True unless given. */
  readonly isInNavigation?: boolean;
  /** Reads from the authority; an error becomes one line on the page. */
  load(context: Context, query: URLSearchParams): Promise<Model>;
  render(model: Model, context: Context, query: URLSearchParams): PageContent;
  readonly actions?: readonly Action[];
  readonly streams?: readonly Stream[];
}

export interface Page extends Omit<PageDefinition<never>, 'load' | 'render'> {
  readonly isInNavigation: boolean;
  show(context: Context, query: URLSearchParams): Promise<PageContent>;
}

/** Pages that belong together. */
export interface PageGroup {
  readonly name: string;
  readonly pages: readonly Page[];
}

export function definePage<Model>(definition: PageDefinition<Model>): Page {
  const { load, render, ...page } = definition;
  return {
    isInNavigation: true,
    ...page,
    show: async (context, query) => render(await load(context, query), context, query),
  };
}
