/** The cost of two signatures: an authority within the overlap of a succession against one with a single key. */
import { type Contestant, contest, type Measured, type Settings } from './contest.ts';
import { issuedCertificates, revocationSigner } from './crl.ts';
import { type Load, startLoad } from './load.ts';
import { compare, lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult, runRound } from './round.ts';
import { seed } from './seed.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';
import { activate, stage } from './succession-steps.ts';

const FLEET = 1000;
const CONNECTIONS = 32;
const ENROLLING = { connections: CONNECTIONS, seconds: 600, rate: null };
/** The entries of the revocation list at the start, and the certificates that the run can revoke. */
const REVOKED = 1000;
const SPARE = 20_000;
const REVOKED_IN_A_ROUND = 200;
/** A margin over the number of requests of the fastest round so far. */
const HEADROOM = 1.3;

interface Side {
  readonly name: string;
  readonly na: AuthorityProcess;
  readonly load: Load;
  readonly nextRevocation: () => Buffer | undefined;
}

export async function benchOverlap(settings: Settings): Promise<Report[]> {
  settings.progress('two networks, one of them within an overlap');
  const spare: [string[], string[]] = [[], []];
  const fill = (certificates: string[]) => async (folder: string) => {
    await seed(folder, { nodes: REVOKED + SPARE, revoked: REVOKED, invites: 0, agents: 0 });
    certificates.push(...(await issuedCertificates(folder)));
  };
  await using two = await startAuthority(null, settings.threads, fill(spare[0]));
  await using one = await startAuthority(null, settings.threads, fill(spare[1]));
  await using loadOfTwo = startLoad();
  await using loadOfOne = startLoad();
  const sides: readonly Side[] = [
    {
      name: 'two signatures',
      na: two,
      load: loadOfTwo,
      nextRevocation: revocationSigner(two, two.dataDir, spare[0]),
    },
    {
      name: 'one signature',
      na: one,
      load: loadOfOne,
      nextRevocation: revocationSigner(one, one.dataDir, spare[1]),
    },
  ];
  await activate(two, await stage(two, 'planned', 0));
  for (const { name, na, load } of sides) {
    const plan = { target: na, ...ENROLLING };
    const joined = load.ask('enroll', { plan, network: na.network, nodes: FLEET });
    assertAccepted(name, await joined);
  }
  const { rate } = settings;
  const connections = settings.connections ?? CONNECTIONS;

  /** Rounds of the same work in both networks. */
  async function measured(
    what: string,
    run: (side: Side, seconds: number) => Promise<RoundResult>,
    prepare?: Parameters<typeof contest>[2],
  ): Promise<Report> {
    settings.progress(what);
    const contestants = sides.map(
      (side): Contestant => ({ name: side.name, run: (seconds) => run(side, seconds) }),
    );
    const standings = (await contest(contestants, settings, prepare)) as [Measured, Measured];
    return {
      benchmark: `succession: ${what}`,
      about: `within an overlap and with a single key, ${connections} connections, ${settings.threads} thread(s)`,
      lines: standings.map(lineOf),
      comparisons: [compare(...standings, null)],
      notes: [],
    };
  }

  return [
    await measured(
      'heartbeats with bulletins',
      ({ na, load }, seconds) => load.ask('heartbeats', { target: na, connections, rate, seconds }),
      ({ seconds, fastest }) => {
        const count = Math.ceil(seconds * (rate ?? fastest * HEADROOM));
        return Promise.all(sides.map(({ load }) => load.ask('sign', { count, bulletin: true })));
      },
    ),
    await measured('renewals', ({ na, load }) =>
      load.ask('renew', { plan: { target: na, ...ENROLLING } }),
    ),
    await measured(`${REVOKED_IN_A_ROUND} revocations one by one`, ({ na, nextRevocation }) =>
      runRound({ target: na, ...ENROLLING, connections: 1 }, (index) =>
        index < REVOKED_IN_A_ROUND ? nextRevocation() : undefined,
      ),
    ),
  ];
}
