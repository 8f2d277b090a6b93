/** Wrong uses of commands: each ends with its exit code and one sentence with the cause, and says what to do. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { wrapped } from '../src/cli/kernel/output.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runAtTerminal, runCommand } from './support/commands.ts';
import { sharedScratch } from './support/folders.ts';
import { joinedNode } from './support/requests.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const folder = sharedScratch();
await joinedNode(na, { name: 'web-1' });
writeFileSync(join(folder, 'junk.json'), '{');
writeFileSync(join(folder, 'marked.json'), '\u{feff}{}');
writeFileSync(join(folder, 'list.json'), '[]');

const NO_CURE = /^$/;

/** The command, its exit code, its cause, and the cure if that is not the help of the command. FOLDER and DATA are paths. */
const USES: readonly (readonly [line: string, exit: number, cause: RegExp, cure?: RegExp])[] = [
  ['frobnicate', 2, /^unknown command 'frobnicate'$/],
  ['node frob', 2, /^unknown command 'frob'/],
  ['help node frob', 2, /^unknown command 'frob'$/],
  ['bogus', 2, /^unknown command 'bogus'$/, /^See mesh-na --help\.$/],
  ['node list --url nope', 2, /must be an http or https URL\.$/],
  ['node list --silent', 2, /^unknown option '--silent'$/],
  ['node list --jsn', 2, /^unknown option '--jsn' \(Did you mean --json\?\)$/],
  [
    'node list -o json',
    2,
    /^unknown option '-o'$/,
    /^For JSON, use --json\. See mesh-na node list --help\.$/,
  ],
  ['node list --silent-since yesterday', 2, /'yesterday' is invalid\. It must be a time such as /],
  ['node list --limit 0', 2, /'0' is invalid\. It must be a whole number, 1 or more\.$/],
  ['node list --sort bogus', 2, /'bogus' is invalid\. Allowed choices are certificate, name, /],
  ['node list --health', 2, /^option '--health <status>' argument missing$/],
  ['node list extra', 2, /^too many arguments for 'list'\. Expected 0 arguments but got 1\.$/],
  ['node list --reverse', 2, /^--reverse needs --sort$/],
  ['node list --limit 1 --limit 2', 2, /^--limit is given twice$/],
  ['node set', 2, /^missing required argument 'node': name or key of the node, /],
  [
    'node set web-9 --name x',
    4,
    /^No node key begins with web-9, and no node has this name$/,
    NO_CURE,
  ],
  ['node set web-1', 2, /^Give a --name, a --label or a --remove-label$/],
  ['node set web-1 --label a=1 --label a=2', 2, /The label a is given twice\.$/],
  ['node show AAAA', 2, /^AAAA is too short: give at least the first 8 characters of the node key/],
  [
    'node revoke web-1 --reason bored',
    2,
    /'bored' is invalid\. Allowed choices are key_compromise/,
  ],
  ['node join', 2, /^Give the invite token with either --token or --token-file$/],
  [
    'node join --root-key abc --token x',
    2,
    /It must be a public key, and this is not base64 of 32 bytes\.$/,
  ],
  [
    'node heartbeat --node-dir FOLDER/none',
    3,
    /node\.key does not exist; join the network first, or name its folder with --node-dir$/,
    NO_CURE,
  ],
  [
    'node status --node-dir FOLDER/none',
    3,
    /certificate\.json does not exist; join the network first, or name its folder with --node-dir$/,
    NO_CURE,
  ],
  ['node run --node-dir FOLDER/none', 2, /^The network is not known yet: give its --root-key, /],
  ['certificate show', 2, /^missing required argument 'cert-id': certificate id, /],
  ['certificate show abc', 2, /^abc is too short: /],
  ['certificate show web-99', 4, /^No certificate begins with web-99, and no node has /, NO_CURE],
  ['certificate revoke', 2, /^Give one certificate, a node key with --key, or filters$/],
  ['certificate revoke web-1 --status active', 2, /^Give one certificate, a node key with --key, /],
  ['certificate revoke --name x --yes-revoke x', 2, /'x' is invalid\. It must be a whole number/],
  ['certificate verify FOLDER/junk.json', 3, /junk\.json cannot be read as JSON \(/, NO_CURE],
  [
    'certificate verify FOLDER/marked.json',
    3,
    /\(it begins with a byte order mark; save it without one\)$/,
    NO_CURE,
  ],
  [
    'certificate verify DATA/genesis.json',
    3,
    /does not contain the certificate of a node$/,
    NO_CURE,
  ],
  ['invite create --count 0', 2, /It must be a whole number, 1 or more\.$/],
  ['invite create --max-validity-hours 0', 2, /It must be a whole number, 1 or more\.$/],
  ['invite create --token-expiry-hours 30m', 2, /number of hours, or a duration such as 24h or 7d/],
  ['node renew --validity-hours soon', 2, /number of hours, or a duration such as 24h or 7d/],
  ['events --last 3', 2, /^unknown option '--last'$/],
  ['help node list extra', 2, /^unknown command 'extra'$/],
  [
    'invite create --count 100000',
    4,
    /count must be an integer from 1 to 1000/,
    /^Request 1 to 1000 tokens/,
  ],
  ['invite create --out FOLDER', 3, / is a folder$/, NO_CURE],
  ['invite create --out FOLDER/none/x', 3, / cannot be written \(ENOENT\)$/, /correct the path/],
  ['invite withdraw', 2, /^Give one invite, or a batch with --batch$/],
  ['invite withdraw 123', 2, /^123 is too short: /],
  ['invite withdraw --batch nothing', 4, /^There is no invite in the batch nothing$/, NO_CURE],
  ['operator-key add x', 2, /^required option '--tier <tier>' not specified: /],
  ['operator-key revoke nobody', 4, /There is no such operator key/, /^Choose an id from mesh-na/],
  ['policy publish', 2, /^Give a --file, or what to change /, NO_CURE],
  ['policy publish --port 99999', 2, /It must be a whole number, from 1 to 65535\.$/],
  ['treaty issue', 2, /^required option '--key <key>' not specified: /],
  ['treaty revoke abc', 2, /^abc is too short: /],
  [
    'treaty verify DATA/genesis.json',
    3,
    /of another kind \(genesis\), and the treaty is expected$/,
    NO_CURE,
  ],
  [
    'attestation verify DATA/genesis.json',
    3,
    /\(genesis\), and the attestation is expected$/,
    NO_CURE,
  ],
  ['feed import DATA/genesis.json', 3, /\(genesis\), and the feed is expected$/, NO_CURE],
  ['feed import FOLDER/none.json', 3, /cannot be read as JSON \(ENOENT\)$/, /correct the path/],
  ['feed import FOLDER', 3, /cannot be read as JSON \(EISDIR\)$/, /give the path of a file/],
  ['agreement verify FOLDER/list.json', 3, /does not contain a JSON object$/, NO_CURE],
  ['audit show --limit 3', 2, /^unknown option '--limit'$/],
  ['audit show --type bogus', 2, /'bogus' is invalid\. The types of events are /],
  ['audit verify --data-dir FOLDER/none', 3, / holds no state of an authority$/, NO_CURE],
  ['events --after x', 2, /It must be a whole number, 0 or more\.$/],
  ['history --series bogus', 2, /'bogus' is invalid\. Allowed choices are requests, /],
  ['connect nowhere', 2, /^required option '--authority-key <key>' not specified: /],
  [
    'profile show nothing',
    3,
    /^There is no profile "nothing"; create one with mesh-na connect$/,
    NO_CURE,
  ],
  ['call readCertificate', 2, /^--cert-id is missing$/],
  [
    'authority-key stage DATA/genesis.json',
    3,
    /name the file that authority-key sign wrote$/,
    NO_CURE,
  ],
  ['backup create', 2, /^required option '--to <file>' not specified: /],
  ['backup create --to FOLDER/no/x', 3, /cannot be written \(ENOENT\)$/, /correct the path/],
  ['backup verify DATA/genesis.json', 4, /is not a usable backup: /, NO_CURE],
  [
    'store status --store postgres://u:secret@127.0.0.1:1/x',
    3,
    /at 127\.0\.0\.1:1\/x cannot be reached/,
    NO_CURE,
  ],
  [
    'store status --store postgres://u:se/cr?et@127.0.0.1:1/x',
    3,
    /^The URL of the store .* write %2F for \/, .*, or set PGPASSWORD$/,
    NO_CURE,
  ],
  [
    'store status --store postgres://u:12/secret@h/x',
    3,
    /^The store must be .*, or set PGPASSWORD$/,
    NO_CURE,
  ],
  [
    'serve --port x --data-dir FOLDER/none',
    3,
    /^--port must be a whole number from 0 to 65535, /,
    NO_CURE,
  ],
  ['console --port x', 2, /'x' is invalid\. It must be a whole number, from 0 to 65535\.$/],
  [
    'completion tcsh',
    2,
    /'tcsh' is invalid for argument 'shell'\. Allowed choices are bash, zsh, fish\.$/,
  ],
  ['status --key-id nobody', 2, /^Key id nobody needs --key-file$/],
  ['status --url ftp://x', 2, /It must be an http or https URL\.$/],
  [
    'invite list --url ELSEWHERE',
    5,
    /^No answer from the authority at \S+ \(unexpected redirect\)$/,
    /^It redirects to https:\/\/na\.example\/admin\/\S+: give that address, if you trust it\.$/,
  ],
  [
    'status --url http://nobody.invalid',
    5,
    /^No answer from the authority at /,
    /^The (host|resolver) /,
  ],
];

const others = createServer((request, response) => {
  response.writeHead(302, { location: `https://na.example${request.url}` }).end();
});
others.listen(0, '127.0.0.1');
await once(others, 'listening');
after(() => others.close());
const { port } = others.address() as AddressInfo;

const HELP = /^See mesh-na( [\w-]+)* --help\.$/;
const ENVIRONMENT = {
  MESH_URL: na.url,
  MESH_DATA_DIR: na.dataDir,
  XDG_CONFIG_HOME: folder,
  NO_COLOR: '1',
};

function refused(line: string) {
  const places = { FOLDER: folder, DATA: na.dataDir, ELSEWHERE: `http://127.0.0.1:${port}` };
  const args = Object.entries(places)
    .reduce((text, [name, place]) => text.replaceAll(name, place), line)
    .split(' ');
  return runCommand(args, ENVIRONMENT);
}

test('a terminal shows what is wrong in lines that end between words', async () => {
  const args = ['node', 'list', '--silent-since', 'yesterday'];
  const { code, shown } = await runAtTerminal(args, { columns: 60, environment: ENVIRONMENT });
  assert.equal(code, 2);
  const lines = shown.trimEnd().split('\n');
  assert.ok(lines.length > 2 && lines.every(({ length }) => length <= 60), shown);
});

test('without a home folder, the message says what to set', {
  skip: process.getuid?.() !== 0 && 'only root can become another user',
}, async () => {
  const { HOME = '' } = process.env;
  delete process.env.HOME;
  process.seteuid?.(54_321);
  try {
    const { code, stderr } = await runCommand(['profile', 'list'], { XDG_CONFIG_HOME: '' });
    assert.deepEqual(
      [code, stderr],
      [3, 'mesh-na: This user has no home folder: set HOME, or XDG_CONFIG_HOME\n'],
    );
  } finally {
    process.seteuid?.(0);
    process.env.HOME = HOME;
  }
});

suite('a wrong use says what is wrong and what to do', { concurrency: false }, () => {
  for (const [line, exit, cause, cure = HELP] of USES) {
    test(line, async () => {
      const { code, stdout, stderr } = await refused(line);
      assert.deepEqual([code, stdout], [exit, ''], stderr);
      const [said = '', advice = '', ...others] = stderr.trimEnd().split('\n');
      assert.match(said.replace(/^mesh-na: /, ''), cause);
      assert.match(advice.trim(), cure);
      assert.deepEqual(others, []);
      assert.doesNotMatch(stderr, /secret/);
      for (const text of [said, advice]) {
        for (const columns of [60, 120]) {
          const shown = wrapped(text, { isTTY: true, columns }, 2);
          const words = (text: string) => text.trim().split(/\s+/);
          assert.deepEqual(words(shown.join(' ')), words(text));
          for (const each of shown) assert.ok(each.length <= columns || !each.trim().includes(' '));
        }
      }
    });
  }
});
