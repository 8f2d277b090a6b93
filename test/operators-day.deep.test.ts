/**
 * A day in the life of an operator, with the commands of the documents: a network is created, many nodes join, one of
 * them is found and revoked, an operator's key is replaced, and the authority is restarted.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { newKey } from '../src/client/keys.ts';
import { createNodeClient, type NodeClient } from '../src/client/node-client.ts';
import { freePort } from '../src/edge/http/free-port.ts';
import { NARROW, startBrowser } from './support/browser.ts';
import { LOADER, PROGRAM_PATH } from './support/project.ts';
import { openShell } from './support/shell.ts';

const REFUSED = 4;
const INVITED = 500;
/** Some nodes join with the command, and the others with the client. */
const BY_COMMAND = ['node-1', 'node-2'] as const;
const BY_CLIENT = 150;
const JOINED = BY_COMMAND.length + BY_CLIENT;
const IS_SERVED = / is served on /;

const folder = mkdtempSync(join(tmpdir(), 'mesh-day-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const url = `http://127.0.0.1:${await freePort('127.0.0.1', 0)}`;

test('an operator creates a network, admits its nodes, finds one and revokes it, and changes keys', async (t) => {
  await using shell = openShell({ cwd: folder, env: environment() });
  /** The output of a command, which must succeed. */
  const run = async (command: string) => {
    const { output, code } = await shell.run(command);
    assert.equal(code, 0, `${command}: ${output}`);
    return output;
  };
  const refused = async (command: string) => {
    const { output, code } = await shell.run(command);
    assert.equal(code, REFUSED, `${command}: ${output}`);
    return output;
  };

  // The network is created, and its root key leaves the machine.
  await run('mesh-na init --network-name helios-grid');
  await run('mkdir vault && mv mesh-data/keys/root.key vault/');
  await shell.serve('mesh-na serve', IS_SERVED);

  // 500 invites at once, one for each node.
  await run(`mesh-na invite create --count ${INVITED} --role role:client --out tokens`);
  const tokens = readFileSync(join(folder, 'tokens'), 'utf8').trim().split('\n');
  assert.equal(new Set(tokens).size, INVITED);

  // Nodes that know the network's root key join; one of them reports something strange.
  await run('root_key=$(jq -r .root_public_key mesh-data/genesis.json)');
  for (const [index, name] of BY_COMMAND.entries()) {
    const join = `mesh-na node join --root-key $root_key --token-file - --node-dir ${name}`;
    await run(`sed -n ${index + 1}p tokens | ${join}`);
  }
  const beats = await joinAll(tokens.slice(BY_COMMAND.length, JOINED));
  for (const beat of beats) await beat();
  await run('mesh-na node heartbeat --node-dir node-1');
  await run("mesh-na node heartbeat --node-dir node-2 --status 'clock set back'");
  const again = await refused(
    'sed -n 1p tokens | mesh-na node join --root-key $root_key --token-file - --node-dir node-3',
  );
  assert.match(again, /invalid_invite_token/);

  // The strange node is found in the roster, and everyone can see attested members.
  assert.equal(await run('mesh-na node list --json | jq .count'), String(JOINED));
  const found = await run("mesh-na node list | grep 'clock set back'");
  const [certificate = ''] = found.split(/\s+/);
  assert.equal(await run('jq -r .cert_id node-2/certificate.json'), certificate);
  await run(
    'mesh-na agent register --node-dir node-2 --agent-id survey-7 --capability survey --host survey.example --port 7448',
  );
  await run('mesh-na attestation issue survey-7 --role role:client --out badge.json');

  const browser = await startBrowser();
  t.after(() => browser.close());
  const open = (page: string) => browser.visit(url + page, { width: NARROW });
  await using dashboard = await open('/dashboard');
  const active = dashboard.page.locator('[data-stat="nodes.active"] strong');
  assert.equal((await active.innerText()).trim(), String(JOINED));
  await dashboard.page.locator('[data-live-status="live"]').waitFor();
  await using agents = await open('/capability?name=survey');
  assert.equal(await agents.page.getByText('survey-7').count(), 1);

  // It is revoked by the id that the roster shows, and so is its attestation.
  await run(`mesh-na certificate revoke ${certificate} --reason key_compromise`);
  await run(
    'mesh-na attestation revoke $(jq -r .attestation_id badge.json) --reason "its node is compromised"',
  );
  assert.match(
    await refused('mesh-na node heartbeat --node-dir node-2'),
    /403 certificate_revoked/,
  );
  assert.match(
    await refused('mesh-na node status --node-dir node-2'),
    /^valid +no: it is revoked$/m,
  );
  assert.match(await run('mesh-na node status --node-dir node-1'), /^valid +yes$/m);
  const listed = `curl -s ${url}/crl | jq -r '.revoked_certificates[].certificate_id'`;
  assert.equal(await run(listed), certificate);
  const feed = `curl -s ${url}/sovereign-revocation-feed | jq -c .revoked_attestation_ids`;
  assert.equal(await run(feed), await run("jq -c '[.attestation_id]' badge.json"));
  assert.equal(await run('mesh-na node list --json | jq .count'), String(JOINED - 1));

  // The open dashboard was updated without a reload.
  await dashboard.page.getByText('Attestation revoked').waitFor();
  await dashboard.page.getByText('Certificate revoked').waitFor();
  assert.equal(await dashboard.page.getByText(certificate).count(), 1);
  assert.equal((await active.innerText()).trim(), String(JOINED - 1));
  assert.deepEqual(dashboard.problems, []);

  // An operator's key is replaced: the new one is added before the old one is revoked.
  await run('mesh-na operator-key create ops-2');
  const serve =
    'mesh-na serve --operator-public-key ops-2=ops-2.pub --operator-key-tier ops-2=privileged';
  await shell.stop();
  await shell.serve(serve, IS_SERVED);
  await run('export MESH_OPERATOR_KEY_ID=ops-2 MESH_OPERATOR_KEY_FILE=ops-2.key');
  assert.equal(
    await run('mesh-na operator-key revoke ops-privileged --reason rotated'),
    'Operator key ops-privileged is revoked; 2 remain usable.',
  );
  const old = '--key-id ops-privileged --key-file mesh-data/keys/operator-privileged.key';
  assert.match(await refused(`mesh-na invite create ${old}`), /401 /);

  // After a restart, everything is as it was.
  await shell.stop();
  await shell.serve(serve, IS_SERVED);
  assert.match(await refused(`mesh-na invite create ${old}`), /401 /);
  assert.equal(await run(listed), certificate);
  assert.equal(await run(feed), await run("jq -c '[.attestation_id]' badge.json"));
  assert.match(await refused('mesh-na node heartbeat --node-dir node-2'), /certificate_revoked/);
  await run('mesh-na node heartbeat --node-dir node-1');
  for (const beat of beats) await beat();
  assert.equal(await run('mesh-na node list --json | jq .count'), String(JOINED - 1));
  await using later = await open('/dashboard');
  assert.equal(await later.page.getByText(certificate).count(), 1);
  assert.match(await run('mesh-na audit verify'), /^The audit log is intact/);
});

/** Joins a node with each token; returns a function for each that sends its heartbeat. */
async function joinAll(tokens: readonly string[]): Promise<(() => Promise<void>)[]> {
  const beats: (() => Promise<void>)[] = [];
  for (const token of tokens) {
    const node: NodeClient = createNodeClient({ url, key: newKey() });
    const { cert_id } = await node.join({ invite_token: token });
    beats.push(async () => {
      assert.equal((await node.heartbeat({ cert_id, status: 'healthy' })).ack, true);
    });
  }
  return beats;
}

/** An environment in which `mesh-na` is a command, and every setting except the port is the default. */
function environment(): NodeJS.ProcessEnv {
  const commands = join(folder, 'bin');
  mkdirSync(commands);
  const loader = LOADER.map((part) => (part === 'tsx' ? import.meta.resolve('tsx') : part));
  const program = [process.execPath, ...loader, PROGRAM_PATH];
  const script = `#!/bin/sh\nexec ${program.map((part) => `"${part}"`).join(' ')} "$@"\n`;
  writeFileSync(join(commands, 'mesh-na'), script, { mode: 0o755 });
  return {
    PATH: `${commands}:${process.env.PATH}`,
    HOME: folder,
    LANG: 'C.UTF-8',
    PORT: new URL(url).port,
    MESH_URL: url,
    MESH_THREADS: '1',
    MESH_DRAIN_SECONDS: '0',
  };
}
