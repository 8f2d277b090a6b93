/** The addresses of all pages of an authority at which there is something to see. */
import { ROUTES } from '../../src/edge/routes/table.ts';
import { isPage } from '../../src/pages/reference/contents.ts';
import type { SampleSubjects } from './sample-networks.ts';

export interface PageAddress {
  /** Usable as a file name. */
  readonly name: string;
  readonly path: string;
}

/** The pages come from the route table; for some of them, there is more to see than at the bare path. */
export function pageAddresses(subjects: SampleSubjects): PageAddress[] {
  const further = furtherAddresses(subjects);
  const pages = ROUTES.filter(isPage).flatMap(({ path }) => {
    const name = path === '/' ? 'home' : path.slice(1);
    return [{ name, path }, ...further.filter((address) => address.path.startsWith(`${path}?`))];
  });
  return [...pages, { name: 'not-found', path: '/nowhere' }];
}

function furtherAddresses(subjects: SampleSubjects): PageAddress[] {
  const { self, trusted, distrusted, treaty, revokedTreaty, attestation, capability } = subjects;
  const ends = (to: string | null) => to && { from: self, to };
  return [
    ...address('connectome-found', '/connectome', trusted && { q: trusted, sort: '-ends' }),
    ...address('atlas-selected', '/atlas', trusted && { sovereign: trusted }),
    ...address('atlas-path', '/atlas', ends(trusted)),
    ...address('trust-yes', '/trust', ends(trusted)),
    ...address('trust-no', '/trust', ends(distrusted)),
    ...address('trust-unknown', '/trust', { from: self, to: 'elsewhere' }),
    ...address('treaty-active', '/treaty', treaty && { id: treaty }),
    ...address('treaty-revoked', '/treaty', revokedTreaty && { id: revokedTreaty }),
    ...address('sovereign-other', '/sovereign', trusted && { id: trusted }),
    ...address('attestation-revoked', '/attestation', attestation && { id: attestation }),
    ...address('capability-found', '/capability', capability && { name: capability }),
  ];
}

function address(
  name: string,
  path: string,
  query: { readonly [name: string]: string } | '' | null,
): PageAddress[] {
  return query ? [{ name, path: `${path}?${new URLSearchParams(query)}` }] : [];
}
