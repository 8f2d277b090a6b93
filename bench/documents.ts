/** Cached public documents: the authority against static answers of the same bytes. */
import { join } from 'node:path';
import type { StaticAnswer } from './bare-server.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { getRequest } from './fleet.ts';
import type { Load } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report, starvedNotes } from './report.ts';
import type { Target } from './round.ts';
import { OTHER, startAuthority, startBare, startOther } from './servers.ts';

const TARGET = 0.85;
const CONNECTIONS = 64;
const PATHS = ['/crl', '/genesis'] as const;
/** The path at which the bare server sends as many headers as the authority. */
const ALL_HEADERS = '/all-headers';
/** Headers that uWebSockets.js or HTTP itself adds, regardless of the handler. */
const NOT_OURS = new Set(['connection', 'content-length', 'date', 'keep-alive']);

export async function benchDocuments(load: Load, settings: Settings): Promise<Report[]> {
  const { cpuProf } = settings;
  const connections = settings.connections ?? CONNECTIONS;
  await using na = await startAuthority(cpuProf === null ? null : join(cpuProf, 'documents'));
  const answers = await Promise.all(PATHS.map((path) => copiesOf(na.url, path)));
  await using bare = await startBare({ answers: answers.flat() });
  await using other = await startOther(settings);

  function read(target: Target, path: string) {
    const request = getRequest(path).toString('base64');
    return (seconds: number) =>
      load.ask('repeat', { plan: { target, connections, seconds, rate: null }, request });
  }
  const reports: Report[] = [];
  for (const path of PATHS) {
    const standings = await contest(
      [
        { name: 'NA', run: read(na, path) },
        { name: 'bare', run: read(bare, path) },
        { name: 'bare, all headers', run: read(bare, ALL_HEADERS + path) },
        ...(other ? [{ name: OTHER, run: read(other, path) }] : []),
      ],
      settings,
    );
    const [ours, ...against] = standings as [Measured, ...Measured[]];
    const highest = Math.max(...standings.map((each) => lineOf(each).requests_per_second));
    reports.push({
      benchmark: `documents GET ${path}`,
      about: `${connections} connections, closed loop`,
      lines: standings.map(lineOf),
      comparisons: against.map((each, index) => compare(ours, each, index ? null : TARGET)),
      notes: [
        'bare sends status, content type and body; with all headers, as many as the NA does',
        `the load generator reached ${highest.toLocaleString('en')} requests/s`,
        ...busyClientNotes(standings),
        ...starvedNotes(standings),
      ],
    });
  }
  return reports;
}

/** The authority's answer as static answers: one with only its content type, and one with all its headers. */
async function copiesOf(url: string, path: string): Promise<StaticAnswer[]> {
  const response = await fetch(url + path);
  const body = await response.text();
  const all = [...response.headers].filter(([name]) => !NOT_OURS.has(name));
  return [
    { path, headers: all.filter(([name]) => name === 'content-type'), body },
    { path: ALL_HEADERS + path, headers: all, body },
  ];
}
