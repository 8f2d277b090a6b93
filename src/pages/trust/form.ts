/** The form that asks why one sovereign trusts another, and the URLs of its questions. */
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html } from '../ui/html.ts';
import { nameInCell } from '../ui/values.ts';

/** The reader's question, as the URL has it. */
export interface TrustPageQuestion {
  readonly from: string;
  readonly to: string;
  /** A timestamp, or empty for now. */
  readonly asOf: string;
  /** Ids of excluded treaties. */
  readonly without: readonly string[];
}

/** The URL of a question; relative, so that pages work behind a proxy with a path prefix. */
export function trustLink(question: TrustPageQuestion): string {
  return `./trust?${searchOf(question)}#answer`;
}

/** The URL of the answer as JSON. */
export function trustDataLink(question: TrustPageQuestion): string {
  return `./connectome/trust-path?${searchOf(question)}&explain=1`;
}

function searchOf({ from, to, asOf, without }: TrustPageQuestion): string {
  const search = new URLSearchParams({ from, to });
  if (asOf !== '') search.set('as_of', asOf);
  for (const id of without) search.append('without', id);
  return search.toString();
}

/** `names` are suggestions; `asOf` is empty or a canonical timestamp. */
export function trustForm(question: TrustPageQuestion, names: readonly string[]): Html {
  const { from, to, asOf, without } = question;
  return html`<form class="ask" method="get" action="./trust#answer">
<p class="field"><label for="from">Trusting sovereign</label><input type="text" id="from" name="from" list="names" value="${from}" required autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="to">Trusted sovereign</label><input type="text" id="to" name="to" list="names" value="${to}" required autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="as-of">As of (UTC; empty for now)</label><input type="datetime-local" id="as-of" name="as_of" step="any" value="${localTime(asOf)}"></p>
<p class="field"><button type="submit">Ask</button></p>
${without.length === 0 ? '' : leftOut(without)}</form>
<datalist id="names">${names.map((name) => html`<option value="${name}"></option>`)}</datalist>`;
}

function leftOut(without: readonly string[]): Html {
  return html`<fieldset class="left-out"><legend>As if these treaties had ended</legend>
${without.map(
  (id) =>
    html`<label><input type="checkbox" name="without" value="${id}"${CHECKED}> <span class="id">${nameInCell(id)}</span></label>`,
)}</fieldset>`;
}

const CHECKED = html` checked`;

/** A canonical timestamp in the format of the field: without a zone, and with at most milliseconds. */
function localTime(timestamp: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?/.exec(timestamp)?.[0] ?? '';
}

/** A short form for the home page. */
export function trustTeaser(from: string): Html {
  return html`<section class="section" aria-labelledby="trust">
<h2 id="trust">Why does one sovereign trust another?</h2>
${trustForm({ from, to: '', asOf: '', without: [] }, [from])}
</section>`;
}

/** The page that asks which treaty, sovereign or attestation is meant. */

/** A kind of thing that has details pages, and how to find one. */
export interface Findable {
  readonly title: string;
  /** Shown when the id does not exist. */
  readonly missing: { readonly title: string; readonly lede: string };
  readonly path: string;
  /** The label of the `id` field. */
  readonly label: string;
  /** Points to the list of all of them. */
  readonly list: Html;
}

/** Asks for an id when it is missing or does not exist. An id that does not exist is not repeated on the page. */
export function askPage(
  { title, missing, path, label, list }: Findable,
  networkName: string,
  isMissing = false,
): HtmlPage {
  return renderPage({
    ...(isMissing ? missing : { title }),
    path,
    networkName,
    body: html`<form class="ask" method="get" action=".${path}" role="search">
<p class="field"><label for="id">${label}</label><input type="text" id="id" name="id" placeholder="in full" required autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Find</button></p>
</form>
<p>${list}</p>`,
  });
}

export const TREATIES: Findable = {
  title: 'Find a treaty',
  missing: {
    title: 'Treaty not found',
    lede: 'No treaty here has this id. It may be misspelled or incomplete, or only another authority knows the treaty.',
  },
  path: '/treaty',
  label: 'Id',
  list: html`The <a href="./connectome#treaties-heading">Connectome</a> lists all treaties.`,
};

export const SOVEREIGNS: Findable = {
  title: 'Find a sovereign',
  missing: {
    title: 'Sovereign not found',
    lede: 'No treaty and no imported feed names this sovereign. Its name may be misspelled.',
  },
  path: '/sovereign',
  label: 'Name',
  list: html`The <a href="./atlas#list-heading">atlas</a> lists all sovereigns.`,
};

export const ATTESTATIONS: Findable = {
  title: 'Find an attestation',
  missing: {
    title: 'Attestation not found',
    lede: 'No attestation here has this id. It may be misspelled or incomplete, or another authority has issued the attestation.',
  },
  path: '/attestation',
  label: 'Id',
  list: html`Attestations are listed at <a href="./attestations">/attestations</a>.`,
};
