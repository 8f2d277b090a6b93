/** Variables that look like settings but are not: a misspelled one would otherwise silently have no effect. */
import { OPTIONS, type OptionEntry } from './options.ts';

const OURS = 'MESH_';
/** Variables that a container platform sets for a service with such a name. */
const OF_A_SERVICE = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP)(_|$)/;
const ADDRESS_OF_A_SERVICE = /^(tcp|udp):\/\//;
/** A name with more differences than this is considered another word. */
const MOST_DIFFERENCES = 2;

const SETTINGS = Object.values<OptionEntry>(OPTIONS).flatMap(({ variable }) => variable ?? []);

/**
 * A sentence for each unknown variable; `others` are the variables that other commands read. No sentence repeats a
 * value.
 */
export function unknownVariables(
  environment: { readonly [name: string]: string | undefined },
  others: readonly string[],
): string[] {
  const known = [...SETTINGS, ...others];
  return Object.entries(environment)
    .filter(([name, value = '']) => isMeantForUs(name, value) && !known.includes(name))
    .map(([name]) => {
      const bare = name.slice(OURS.length);
      const hint = known.includes(bare) ? `; did you mean ${bare}?` : hintFor(name, known);
      return `The variable ${name} is not a setting and has no effect${hint}`;
    });
}

function isMeantForUs(name: string, value: string): boolean {
  return name.startsWith(OURS) && !OF_A_SERVICE.test(name) && !ADDRESS_OF_A_SERVICE.test(value);
}

/** What to do about an unknown name: use the known one that was probably meant, or none. */
export function hintFor(name: string, known: readonly string[]): string {
  const most = Math.min(MOST_DIFFERENCES, name.length / 2);
  const [best] = known
    .map((candidate) => ({ candidate, by: differences(name, candidate) }))
    .filter(({ by }) => by <= most)
    .sort((a, b) => a.by - b.by);
  return best === undefined ? '; remove it' : `; did you mean ${best.candidate}?`;
}

/** The Levenshtein distance: the number of letters to add, remove or replace. */
function differences(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (row[j] ?? 0) + (letter === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
