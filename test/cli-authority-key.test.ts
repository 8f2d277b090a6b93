/** Replacing the authority's key offline: `mesh-na authority-key prepare` and `sign` [authority-keys-5]. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject, JsonValue } from '../src/base/json/value.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { publicKeyOf } from '../src/base/keys/read-key.ts';
import { genesisProblem } from '../src/client/network-trust.ts';
import { followChain } from '../src/protocol/records/authority-chain.ts';
import { type GenesisBlock, readGenesisBlock } from '../src/protocol/records/genesis.ts';
import { instantOf } from '../src/protocol/records/record.ts';
import {
  readSignedSuccession,
  type SignedSuccession,
} from '../src/protocol/records/succession-request.ts';
import { isLeaf, nodesOf, put } from './support/altered.ts';
import { runAtTerminal, runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { signedSuccession } from './support/successions.ts';

const DAY = 86_400_000;
const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function network(name = 'alpha') {
  const { folder, made } = makeNetworkFolder(name);
  folders.push(folder);
  const at = (...names: string[]) => join(folder, ...names);
  const read = (path: string) => parseJson(readFileSync(path, 'utf8'));
  return {
    at,
    made,
    read,
    rootKey: at('keys', 'root.key'),
    genesis: () => readGenesisBlock(read(at('genesis.json'))) as GenesisBlock,
    prepare: (out: string, ...more: string[]) =>
      runCommand(['authority-key', 'prepare', '--data-dir', folder, '--out', at(out), ...more]),
    prepareFailing: (...more: string[]) =>
      endOf(['authority-key', 'prepare', '--data-dir', folder, '--out', at('never'), ...more]),
    sign: (request: string, out: string, ...more: string[]) =>
      runCommand([...signing(at('keys', 'root.key'), at(request), at(out)), '--yes', ...more]),
  };
}

type Network = ReturnType<typeof network>;

function signing(rootKey: string, request: string, out: string): string[] {
  const files = ['--root-key', rootKey, '--request', request, '--out', out];
  return ['authority-key', 'sign', ...files];
}

async function signed(alpha: Network, name: string, ...options: string[]) {
  const prepared = await alpha.prepare(`${name}.request`, ...options);
  assert.equal(prepared.code, 0, prepared.stderr);
  const done = await alpha.sign(`${name}.request`, name);
  assert.equal(done.code, 0, done.stderr);
  const succession = readSignedSuccession(alpha.read(alpha.at(name)));
  assert.ok(succession !== null);
  return { succession, shown: done.stdout };
}

function follow(alpha: Network, statements: readonly unknown[], now: number) {
  const { network_name: networkName, root_public_key: rootKey } = alpha.genesis();
  const pin = { networkName, trusted: { rootKey } };
  const verdict = followChain(pin, { successions: statements }, now, {
    verify: verifySignature,
    sha256: SHA256,
  });
  assert.ok(verdict.refusal === null, verdict.refusal?.message);
  return verdict;
}

suite('a planned change', () => {
  const alpha = network();
  let succession: SignedSuccession;

  test('is prepared and signed, including its rollback', async () => {
    const before = Date.now();
    const { succession: made, shown } = await signed(alpha, 'planned', '--activate-at', '3d');
    succession = made;
    const { statement, roll_back } = succession;
    const activates = instantOf(statement.activates_at);
    assert.ok(Math.abs(activates - before - 3 * DAY) < 120_000);
    assert.equal(instantOf(statement.overlap_until), activates + 14 * DAY);
    assert.ok(roll_back !== null);
    const next = publicKeyOf(readKeyFile(alpha.at('keys', 'na.next.key')));
    assert.deepEqual([statement.from_key, statement.to_key], [alpha.made.na_public_key, next]);
    assert.equal(follow(alpha, [statement], activates).currentKey, next);
    assert.equal(
      follow(alpha, [statement, roll_back.statement], activates).currentKey,
      alpha.made.na_public_key,
    );
    for (const word of ['as planned', alpha.made.na_public_key, next, statement.activates_at]) {
      assert.ok(shown.includes(word), word);
    }
  });

  test('has genesis blocks that nodes accept at their time, one after the other', () => {
    const { roll_back, genesis, statement } = succession;
    const rootKey = alpha.made.root_public_key;
    const now = instantOf(statement.activates_at);
    const problem = (offered: GenesisBlock, held: GenesisBlock, at = now) =>
      genesisProblem(offered, { rootKey, genesis: held }, at);
    assert.ok(roll_back !== null);
    assert.equal(problem(genesis, alpha.genesis()), null);
    assert.equal(problem(roll_back.genesis, genesis), null);
    assert.match(String(problem(genesis, roll_back.genesis)), /older/);
    assert.match(String(problem(genesis, alpha.genesis(), now - DAY)), /not valid before/);
    const { network_authority: _, signatures: __, ...kept } = alpha.genesis();
    const { network_authority: ___, signatures: ____, ...taken } = genesis;
    assert.deepEqual(taken, kept);
  });

  test('keeps its secrets: only the owner can read the next key, and no file or output repeats it', async () => {
    for (const name of ['na.next.key', 'na.next.pub']) {
      assert.equal(statSync(alpha.at('keys', name)).mode & 0o777, 0o600);
    }
    const seeds = ['na.key', 'na.next.key', 'root.key'].map((name) =>
      readKeyFile(alpha.at('keys', name)).toString('base64'),
    );
    const { stdout, stderr } = await alpha.prepare('secrets.request');
    const written = ['planned', 'planned.request'].map((name) =>
      readFileSync(alpha.at(name), 'utf8'),
    );
    for (const text of [stdout, stderr, ...written]) {
      assert.ok(!seeds.some((seed) => text.includes(seed)));
    }
  });

  test('is prepared again for the existing key, with other times', async () => {
    const file = alpha.at('keys', 'na.next.key');
    const key = readFileSync(file, 'utf8');
    rmSync(alpha.at('keys', 'na.next.pub'));
    const { code, stdout } = await alpha.prepare('again.request', '--overlap', '1h', '--json');
    assert.equal(code, 0);
    const { to_key, is_new_key } = JSON.parse(stdout);
    assert.deepEqual([to_key, is_new_key], [succession.statement.to_key, false]);
    assert.equal(readFileSync(file, 'utf8'), key);
    assert.equal(readKeyFile(alpha.at('keys', 'na.next.pub')).toString('base64'), to_key);
  });

  test('replaces no file', async () => {
    const request = readFileSync(alpha.at('planned.request'), 'utf8');
    for (const { code, stderr } of [
      await alpha.prepare('planned.request'),
      await alpha.sign('planned.request', 'planned'),
    ]) {
      assert.equal(code, 3);
      assert.match(stderr, / exists\n {2}Choose another name/);
    }
    assert.equal(readFileSync(alpha.at('planned.request'), 'utf8'), request);
    assert.deepEqual(readSignedSuccession(alpha.read(alpha.at('planned'))), succession);
  });

  test('is signed on a terminal only after a yes', async () => {
    const out = alpha.at('asked');
    const line = signing(alpha.rootKey, alpha.at('planned.request'), out);
    for (const [answer, code] of [
      ['n', 4],
      ['y', 0],
    ] as const) {
      const question = /rollback +to the old key[\s\S]*Sign it\? \[y\/N\] /;
      const answers = [[question, `${answer}\n`]] as const;
      const ended = await runAtTerminal(line, { columns: 200, answers });
      assert.equal(ended.code, code, ended.shown);
    }
    assert.deepEqual(readSignedSuccession(alpha.read(out)), succession);
  });

  test('is not signed without --yes if nobody can be asked', async () => {
    const args = signing(alpha.rootKey, alpha.at('planned.request'), alpha.at('never'));
    const { code, stderr } = await runCommand(args);
    assert.equal(code, 2);
    assert.match(stderr, /add --yes/);
  });

  test('follows another one, which --authority-keys names', async () => {
    const { statement, genesis } = succession;
    const later = network();
    const keep = (path: string, value: object) => writeFileSync(path, JSON.stringify(value));
    for (const name of ['na', 'root']) {
      const from = alpha.at('keys', name === 'na' ? 'na.next.key' : 'root.key');
      writeFileSync(later.at('keys', `${name}.key`), readFileSync(from));
    }
    keep(later.at('genesis.json'), genesis);
    keep(later.at('chain'), { successions: [statement] });
    const named = ['--authority-keys', later.at('chain'), '--activate-at', '9d'];
    const { succession: second } = await signed(later, 'second', ...named);
    assert.equal(second.statement.sequence, 2);
    assert.ok(second.roll_back !== null);
    const chain = [statement, second.statement, second.roll_back.statement];
    assert.equal(follow(later, chain, Date.now() + 10 * DAY).currentKey, statement.to_key);

    const tooEarly = await later.prepareFailing(...named.slice(0, 2), '--activate-at', '1d');
    assert.match(tooEarly.message, /must be later than/);
    keep(later.at('chain'), { successions: [second.statement] });
    assert.equal((await later.prepareFailing(...named)).code, 'gap');
    keep(later.at('chain'), { successions: [] });
    writeFileSync(later.at('keys', 'na.next.key'), readFileSync(alpha.at('keys', 'root.key')));
    assert.equal((await later.prepareFailing('--activate-at', '9d')).code, 'key_used_before');
  });
});

test('a third key is prepared only when a single one signs: until then, the file of the next key is in use', async () => {
  const alpha = network();
  const ground = { genesis: alpha.genesis(), successions: [], now: Date.now() - DAY };
  const { statement, roll_back } = signedSuccession(alpha.at(), ground, { overlap: 3 * DAY });
  const file = alpha.at('keys', 'na.next.key');
  const key = readFileSync(file, 'utf8');
  for (const successions of [[statement], [statement, roll_back?.statement]]) {
    writeFileSync(alpha.at('chain'), JSON.stringify({ successions }));
    const { exit, code, message } = await alpha.prepareFailing(
      ...['--authority-keys', alpha.at('chain')],
    );
    assert.deepEqual([exit, code], [4, 'overlap_not_ended']);
    assert.ok(message.includes(statement.overlap_until), message);
    assert.match(message, /or end the overlap now with mesh-na authority-key finish$/);
  }
  assert.equal(readFileSync(file, 'utf8'), key);

  const staged = {
    successions: [statement],
    keys: [{ public_key: statement.to_key, state: 'next' }],
  };
  writeFileSync(alpha.at('chain'), JSON.stringify(staged));
  const instead = await alpha.prepare('instead', '--authority-keys', alpha.at('chain'), '--json');
  assert.equal(instead.code, 0, instead.stderr);
});

test('after a theft the next key takes over at once, without a rollback or the old key’s signature', async () => {
  const alpha = network();
  const { succession, shown } = await signed(
    alpha,
    'stolen',
    ...['--compromise', '--distrusted-from', '2026-01-05T06:00:00Z'],
  );
  const { statement, roll_back } = succession;
  assert.equal(roll_back, null);
  assert.equal(statement.signatures.length, 1);
  assert.equal(statement.distrusted_from, '2026-01-05T06:00:00Z');
  assert.match(shown, /because the old one was stolen/);
  const { keys } = follow(alpha, [statement], Date.now());
  assert.deepEqual(
    keys.map(({ state }) => state),
    ['distrusted', 'current'],
  );
});

suite('invalid input is refused, and nothing is written', () => {
  const alpha = network();
  const beta = network('beta');

  for (const [options, message] of [
    [['--compromise'], /--distrusted-from/],
    [['--distrusted-from', '1d'], /--compromise/],
    [['--compromise', '--overlap', '1d'], /cannot be used with/],
    [['--compromise', '--distrusted-from', '2999-01-01'], /must not be later/],
    [['--activate-at', '2020-01-01'], /has passed/],
    [['--overlap', 'long'], /a duration such as/],
    [['--overlap', '30d', '--days', '30'], /--days must be longer/],
  ] as const) {
    test(`prepare ${options.join(' ')}`, async () => {
      const end = await alpha.prepareFailing(...options);
      assert.equal(end.exit, 2);
      assert.match(end.message, message);
    });
  }

  test('a file without statements', async () => {
    const end = await alpha.prepareFailing('--authority-keys', alpha.at('genesis.json'));
    assert.equal(end.exit, 3);
    assert.match(end.message, /does not contain the statements/);
  });

  test('a folder whose key is a different one, or in another process', async () => {
    const torn = network();
    writeFileSync(torn.at('keys', 'na.key'), readFileSync(torn.rootKey));
    assert.match((await torn.prepareFailing()).message, /na\.key does not contain the key in/);
    const ofPublic = await torn.prepareFailing('--na-private-key', torn.at('keys', 'na.pub'));
    assert.match(ofPublic.message, /na\.pub holds a public key/);
    writeFileSync(torn.at('mesh-na.json'), '{"signer":"unix:/run/mesh-na/none.sock"}');
    assert.match((await torn.prepareFailing()).message, /do not name a key file/);
  });

  suite('sign', () => {
    const failing = (rootKey: string, request: string) =>
      endOf([...signing(rootKey, request, alpha.at('never')), '--yes']);

    test('is given a request first', async () => {
      assert.equal((await alpha.prepare('request')).code, 0);
    });

    for (const [title, rootKey, request, message] of [
      ['another key of the network', alpha.at('keys', 'na.key'), 'request', /is not the root key/],
      ['another network’s root key', beta.rootKey, 'request', /is not the root key/],
      ['the public root key', alpha.at('keys', 'root.pub'), 'request', /holds a public key/],
      ['no key', alpha.at('genesis.json'), 'request', /does not hold the canonical base64/],
      ['the genesis block', alpha.rootKey, 'genesis.json', /does not contain a request/],
      ['a key for a request', alpha.rootKey, join('keys', 'root.pub'), /cannot be read as JSON/],
      ['a file that is not there', alpha.rootKey, 'nothing', /cannot be read as JSON \(ENOENT\)/],
    ] as const) {
      test(title, async () => {
        const end = await failing(rootKey, alpha.at(request));
        assert.equal(end.exit, 3);
        assert.match(end.message, message);
        assert.ok(!end.message.includes('\n'));
      });
    }

    test('a request and a succession, each in place of the other', async () => {
      assert.equal((await alpha.sign('request', 'done')).code, 0);
      const swapped = await failing(alpha.rootKey, alpha.at('done'));
      assert.match(swapped.message, /but a succession, which is signed already: stage it$/);
      const staged = await endOf(['authority-key', 'stage', alpha.at('request')]);
      assert.match(staged.message, /but a request: sign it first with authority-key sign$/);
      assert.deepEqual([swapped.exit, staged.exit], [3, 3]);
    });

    test('a request that was altered in any way', async () => {
      const request = alpha.read(alpha.at('request'));
      const leaves = nodesOf(request).filter(({ path, value }) => {
        // The key id is only a label; it selects nothing.
        return isLeaf(value) && !(path[0] === 'signatures' && path.includes('key_id'));
      });
      assert.ok(leaves.length > 40);
      for (const { path, value } of leaves) {
        const altered = put(request, path, otherThan(value)) as JsonObject;
        writeFileSync(alpha.at('altered'), JSON.stringify(altered));
        const { exit, message } = await failing(alpha.rootKey, alpha.at('altered'));
        assert.equal(exit, 3, path.join('.'));
        assert.match(
          message,
          /was altered|does not contain a request|is not the root key/,
          path.join('.'),
        );
      }
    });

    test('leaves nothing', () => {
      assert.equal(statSync(alpha.at('never'), { throwIfNoEntry: false }), undefined);
    });
  });
});

test('a key held by a signer is replaced in its file', async () => {
  const alpha = network();
  mkdirSync(alpha.at('signer'));
  renameSync(alpha.at('keys', 'na.key'), alpha.at('signer', 'na.key'));
  writeFileSync(alpha.at('mesh-na.json'), '{"signer":"unix:/run/mesh-na/none.sock"}');
  const named = ['--na-private-key', alpha.at('signer', 'na.key')];
  const { succession } = await signed(alpha, 'succession', ...named);
  const next = publicKeyOf(readKeyFile(alpha.at('signer', 'na.next.key')));
  assert.equal(succession.statement.to_key, next);
});

test('a next key file that is not a key is refused, and stays', async () => {
  const alpha = network();
  mkdirSync(alpha.at('keys', 'na.next.key'));
  assert.equal((await alpha.prepareFailing()).exit, 3);
  rmSync(alpha.at('keys', 'na.next.key'), { recursive: true });
  writeFileSync(alpha.at('keys', 'na.next.key'), 'torn', { mode: 0o600 });
  assert.match((await alpha.prepareFailing()).message, /na\.next\.key does not hold/);
  assert.equal(readFileSync(alpha.at('keys', 'na.next.key'), 'utf8'), 'torn');
});

function otherThan(value: JsonValue): JsonValue {
  if (typeof value !== 'string') return typeof value === 'number' ? value + 1 : 'x';
  const [first = ''] = value;
  return `${first === 'A' ? 'B' : 'A'}${value.slice(1)}`;
}
