/** `docs/architecture.md`: the rooms of the program, with a picture of what imports what, drawn from the sources. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { code, page, table } from './markdown.ts';

/** What is in each room, from the top of the house to its ground. */
const ROOMS: Readonly<Record<string, string>> = {
  'src/cli': 'the command line, and what `mesh-na doctor` checks',
  'src/server':
    'the process: how it starts, serves and stops; threads, where other instances reach this one, webhooks, settings, metrics',
  'src/edge': 'requests without trust: sockets, limits, proofs, routes',
  'src/maintenance': 'backup, restore, move',
  'src/authority': 'commands and queries: decide on subjects, store one unit, publish',
  'src/console': 'the pages of `mesh-na console`, which an operator’s own machine serves',
  'src/pages': 'pages for people',
  'src/store': 'the port of the store, with LMDB and PostgreSQL behind it',
  'src/client': 'the portable client of nodes and operators',
  machines: 'the state table of each subject, pure',
  'src/protocol':
    'what goes over a wire: signed records, rows, answers, and the contract between edge and authority',
  'src/base': 'nothing of the domain: JSON, keys, signatures, time, log',
};

const INTRODUCTION = `One process is one authority. Its parts, from a request to the disk:

\`\`\`
            any number of threads                 one thread                   in the folder, or on a server
HTTP ──▶  edge: sockets, limits, proofs ──▶  authority: machines decide ──▶  store: LMDB or PostgreSQL
     ◀──  documents and pages it has    ◀──  answers after the commit  ◀──
\`\`\`

- **The edge** takes requests of strangers. It reads, limits and checks them, and holds the public documents. It reaches the authority only
  by the calls in \`src/protocol/contract\`, on the same thread or another.
- **The authority** has in memory what it decides on. A command asks the machine of each subject it touches, stages rows and audit entries in
  one unit, and answers when the store has it on disk. Only heartbeats are answered before: they are written within a second.
- **The store** keeps rows that it does not understand. With PostgreSQL, several processes share one: one is active, and the others keep
  the state ready and pass requests on ([several instances](scaling.md#several-instances)).
- **Apart from the process**: a signer may hold the key ([one page](wire/signer.md)); a backup reads the state in a process of its own; an
  operator's console is a client on the operator's machine.

The [code tour](code-tour.md) follows requests through these parts; [the contract](wire/README.md) says what goes over each wire.

## What uses what

An arrow leads from a room to one that it imports from. Whatever can be reached by arrows may be imported, too, unless the
\`README.md\` of the room says otherwise; nothing points up, and no two folders need each other.
\`test/architecture.test.ts\` refuses both, and the import of a library outside the file that wraps it.`;

export function architecturePage(root: string): string {
  const rooms = Object.entries(ROOMS);
  return page(
    'Architecture',
    INTRODUCTION,
    `\`\`\`mermaid\n${drawing(importsOf(root))}\n\`\`\``,
    table(
      ['Room', 'What is in it'],
      rooms.map(([room, content]) => [code(room), content]),
    ),
    '`src/build` compiles the program, and imports no other room.',
  );
}

/** Without arrows between rooms that other arrows connect already. */
function drawing(imports: ReadonlyMap<string, ReadonlySet<string>>): string {
  const after = (room: string): readonly string[] => [...(imports.get(room) ?? [])];
  const isReached = (from: string, to: string): boolean =>
    after(from).some((next) => next === to || isReached(next, to));
  const arrows = Object.keys(ROOMS).flatMap((from) =>
    Object.keys(ROOMS)
      .filter((to) => after(from).includes(to))
      .filter((to) => !after(from).some((next) => next !== to && isReached(next, to)))
      .map((to) => `  ${nameOf(from)} --> ${nameOf(to)}`),
  );
  return ['flowchart TD', ...arrows].join('\n');
}

function nameOf(room: string): string {
  return posix.basename(room);
}

/** The rooms that each room imports from, values or types, as its sources say. */
function importsOf(root: string): Map<string, Set<string>> {
  const imports = new Map<string, Set<string>>();
  for (const room of Object.keys(ROOMS)) {
    const targets = sourcesBelow(root, room).flatMap((file) => targetsOf(root, file));
    const rooms = targets.flatMap((target) => roomOf(target) ?? []);
    imports.set(room, new Set(rooms.filter((other) => other !== room)));
  }
  return imports;
}

function sourcesBelow(root: string, room: string): string[] {
  const names = readdirSync(join(root, room), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => posix.join(room, name));
}

function targetsOf(root: string, file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const named = text.matchAll(/(?:\bfrom |\bimport |\bimport\()'(\.[^']*)'/g);
  return [...named].map(([, target = '']) => posix.join(posix.dirname(file), target));
}

function roomOf(path: string): string | undefined {
  return Object.keys(ROOMS).find((room) => path.startsWith(`${room}/`));
}
