/** The page that asks which treaty, sovereign or attestation is meant. */
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html } from '../ui/html.ts';

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
