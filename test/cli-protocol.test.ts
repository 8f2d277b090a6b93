/** The trust protocol's commands, end to end: each command reads what the previous one saved. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { readAgreementRecord, verifyAgreement } from '../src/protocol/records/agreement.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';
import { networkFolder } from './support/folders.ts';
import { PROGRAM } from './support/project.ts';
import { outcome } from './support/requests.ts';
import { activated, stage, step, succession } from './support/successions.ts';
import { issued, recognize, sovereignPair } from './support/trust.ts';

const SOME_KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
const SCOPE =
  '{"ratio":1.0,"whole":1,"small":1e-7,"place":"Zürich \\u007f 🚀","big":123456789012345678901}';
const SOURCE = {
  source_id: 'src-1',
  source_type: 'proprietary',
  owner_sovereign_id: 'alpha',
  classification_tags: ['internal'],
};

/** A folder for the records of one test. */
function recordFolder(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-cli-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const at = (name: string) => join(folder, name);
  return {
    at,
    read: (name: string) => readFileSync(at(name), 'utf8'),
    write(name: string, content: string | object): string {
      writeFileSync(at(name), typeof content === 'string' ? content : JSON.stringify(content));
      return at(name);
    },
  };
}

function settingsOf(na: TestAuthority) {
  return { MESH_URL: na.url, MESH_DATA_DIR: na.dataDir, MESH_OPERATOR_KEY_ID: 'ops-standard' };
}

/** Runs a command with `--json` for an authority's standard operator; fails unless it ends as expected. */
async function run(na: TestAuthority, args: readonly string[], exit: number = EXIT.done) {
  const { code, stdout, stderr } = await runCommand([...args, '--json'], settingsOf(na));
  assert.equal(code, exit, `${args.join(' ')}: ${stdout}${stderr}`);
  return stdout === '' ? JSON.parse(stderr) : JSON.parse(stdout);
}

/** The reason why a record was verified and refused. */
async function refusedFor(na: TestAuthority, args: readonly string[]): Promise<string> {
  const { accepted, valid, reason, violation_reason } = await run(na, args, EXIT.refused);
  assert.equal(accepted ?? valid, false);
  return reason ?? violation_reason;
}

/** Two authorities that recognize each other. */
async function recognizedPair() {
  const pair = await sovereignPair(REAL_TIME);
  const { alpha, beta } = pair;
  await issued(recognize(alpha, { subject_public_keys: [beta.audience] }));
  const terms = { subject_sovereign_id: 'alpha', subject_public_keys: [alpha.audience] };
  await issued(recognize(beta, terms));
  return pair;
}

test('two sovereigns go through the whole protocol with files', async (t) => {
  const { at, read, write } = recordFolder(t);
  await using pair = await recognizedPair();
  const { alpha, beta } = pair;
  const save = (name: string) => ['--out', at(name)];

  // Agreement: an offer, a narrower counter, and its acceptance, which carries both signatures.
  await run(alpha, [
    ...['agreement', 'offer', 'beta', '--capability', 'read', '--capability', 'write'],
    ...['--scope', write('scope.json', SCOPE), '--validity-hours', '2', ...save('offer.json')],
  ]);
  const counter = await run(beta, [
    ...['agreement', 'counter', at('offer.json'), '--capability', 'read'],
    ...save('counter.json'),
  ]);
  const agreement = await run(alpha, [
    ...['agreement', 'accept', at('offer.json'), '--counter', at('counter.json')],
    ...save('agreement.json'),
  ]);
  assert.deepEqual(agreement.agreed_terms, counter.agreed_terms);
  assert.equal(agreement.signatures.length, 2);
  const { valid_from, valid_until } = agreement.agreed_terms;
  assert.equal(Date.parse(valid_until) - Date.parse(valid_from), 2 * 3_600_000);

  // Numbers and characters of the scope are those of the file, so the signatures still verify.
  assert.match(read('agreement.json'), /"ratio": ?1\.0,"whole": ?1,"small": ?1e-0?7/);
  assert.match(read('agreement.json'), /"big": ?123456789012345678901/);
  const kept = readAgreementRecord(parseJson(read('agreement.json')));
  assert.ok(kept !== null);
  assert.equal(
    verifyAgreement(kept, [alpha.audience], [beta.audience], verifySignature),
    'accepted',
  );
  const verify = ['agreement', 'verify', at('agreement.json')];
  const [verified, byStranger, decision, denial, commitment] = await Promise.all([
    run(alpha, verify),
    refusedFor(alpha, [...verify, '--responder-key', SOME_KEY]),
    run(alpha, ['boundary', 'decide', at('agreement.json'), 'read', ...save('decision.json')]),
    run(alpha, [
      ...['boundary', 'decide', at('agreement.json'), 'write', ...save('denial.json')],
      ...['--context', write('context.json', { context_id: 'ctx-1' })],
    ]),
    run(alpha, ['disclosure', 'commit', at('agreement.json'), ...save('commitment.json')]),
  ]);
  assert.equal(verified.agreement_id, agreement.agreement_id);
  assert.equal(verified.accepted, true);
  assert.equal(byStranger, 'invalid_responder_signature');
  assert.deepEqual([decision.authorized, denial.authorized], [true, false]);
  assert.equal(denial.context_id, 'ctx-1');
  assert.equal(commitment.capability_count, 1);

  // Boundary decisions (a denial is as genuine as an authorization) and proofs of a capability.
  const prove = ['disclosure', 'prove', at('commitment.json'), 'read', '--prover', 'beta'];
  const [allowed, denied, unexpected, forged, proof] = await Promise.all([
    run(beta, [
      ...['boundary', 'verify', at('decision.json')],
      ...['--operator-key', alpha.audience],
    ]),
    run(alpha, ['boundary', 'verify', at('denial.json'), '--accept-denial']),
    run(alpha, ['boundary', 'verify', at('denial.json')], EXIT.refused),
    refusedFor(beta, ['boundary', 'verify', at('decision.json')]),
    run(beta, [...prove, '--agreement', at('agreement.json'), ...save('proof.json')]),
    run(beta, [...prove, '--committed', 'read', '--committed', 'write', ...save('wrong.json')]),
  ]);
  assert.equal(allowed.authorized, true);
  assert.deepEqual([denied.accepted, denied.authorized], [true, false]);
  assert.equal(unexpected.reason, 'unauthorized_capability_out_of_scope');
  assert.equal(forged, 'invalid_signature');

  const member = ['disclosure', 'verify', at('proof.json'), at('commitment.json')];
  const [shown, misplaced, nullifier] = await Promise.all([
    run(beta, [...member, '--issuer-key', alpha.audience]),
    refusedFor(alpha, ['disclosure', 'verify', at('wrong.json'), at('commitment.json')]),
    run(alpha, ['disclosure', 'nullify', at('proof.json'), ...save('nullifier.json')]),
  ]);
  assert.deepEqual([shown.valid, shown.commitment_id], [true, commitment.commitment_id]);
  assert.equal(misplaced, 'path_length_inconsistent');
  assert.deepEqual(JSON.parse(read('nullifier.json')), nullifier);
  assert.equal(nullifier.proof_id, proof.proof_id);

  // Consensus of both, and the second use of a proof.
  const { decision_id, agreement_id } = decision;
  const justification = write('justification.json', {
    proof_id: 'proof-1',
    decision_id,
    issuer_sovereign_id: 'auditor',
    trace: { decision_id, agreement_id, operator_sovereign_id: 'alpha', final_authorized: true },
  });
  const votes = [at('vote-alpha.json'), at('vote-beta.json')];
  const [again] = await Promise.all([
    run(alpha, ['disclosure', 'nullify', at('proof.json')], EXIT.refused),
    run(alpha, ['consensus', 'vote', justification, 'approve', ...save('vote-alpha.json')]),
    run(beta, [
      'consensus',
      'vote',
      justification,
      'approve',
      '--reason',
      'é',
      ...save('vote-beta.json'),
    ]),
  ]);
  assert.equal(again.error.code, 'nullifier_failed');
  assert.match(again.error.message, /\(422 nullifier_failed: already_issued, request /);
  const validators = ['--validator', 'alpha', '--validator', 'beta', '--threshold', '2'];
  const consensus = await run(alpha, [
    ...['consensus', 'prove', justification, ...votes, ...validators],
    ...save('consensus.json'),
  ]);
  assert.deepEqual(
    consensus.votes,
    votes.map((vote) => JSON.parse(readFileSync(vote, 'utf8'))),
  );
  const agreed = ['consensus', 'verify', at('consensus.json')];
  const alphaKey = ['--validator-key', `alpha=${alpha.audience}`];
  const betaKey = ['--validator-key', `beta=${beta.audience}`];
  const [reached, keyless] = await Promise.all([
    run(beta, [...agreed, ...alphaKey, ...betaKey, '--assembler-key', alpha.audience]),
    refusedFor(alpha, [...agreed, ...alphaKey]),
  ]);
  assert.deepEqual([reached.valid, reached.consensus_id], [true, consensus.consensus_id]);
  assert.equal(keyless, 'unknown_validator_key');
});

test('data is licensed, and access to it declared and verified, with files', async (t) => {
  const { at, read, write } = recordFolder(t);
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const sources = write('sources.json', [SOURCE]);
  const intent = ['data-usage', 'declare', sources, '--access', 'read'];
  const none = await run(na, ['data-usage', 'license', '--show'], EXIT.refused);
  const [license, declared] = await Promise.all([
    run(na, [
      ...['data-usage', 'license', '--licensee', 'beta', '--source', 'src-1', '--access', 'read'],
      ...['--max-volume', '1000', '--prohibit', 'secret', '--out', at('license.json')],
      ...['--valid-from', '2026-01-01T02:00:00+02:00', '--valid-until', '2099-12-31'],
    ]),
    run(na, [...intent, '--volume', '0', '--decision-id', 'dec-1', '--out', at('intent.json')]),
    run(na, [...intent, '--access', 'export', '--volume', '1001', '--out', at('much.json')]),
  ]);
  assert.equal(none.error.code, 'no_policy');
  assert.equal(license.max_volume_bytes_per_session, 1000);
  assert.deepEqual(
    [license.valid_from, license.valid_until],
    ['2026-01-01T00:00:00Z', '2099-12-31T00:00:00Z'],
  );
  assert.deepEqual([declared.decision_id, declared.estimated_volume_bytes], ['dec-1', 0]);

  const verify = (name: string) => ['data-usage', 'verify', at(name), at('license.json')];
  const [shown, valid, unsigned, people] = await Promise.all([
    run(na, ['data-usage', 'license', '--show', '--out', at('shown.json')]),
    run(na, verify('intent.json')),
    refusedFor(na, [...verify('intent.json'), '--agent-key', SOME_KEY]),
    runCommand(verify('much.json'), settingsOf(na)),
  ]);
  assert.deepEqual(shown, license);
  assert.equal(read('shown.json'), read('license.json'));
  assert.deepEqual([valid.valid, valid.violation_count], [true, 0]);
  assert.equal(unsigned, 'intent_exceeds_license');
  assert.equal(people.code, EXIT.refused);
  assert.match(
    people.stdout,
    /^Refused \(access_type_not_permitted\): intent .*\naccess_type_not_permitted: .*\nvolume_cap_exceeded: .*\n$/,
  );
});

test('an agreement is verified with every key that the authority has had, after a change of the key, too', async (t) => {
  const { at } = recordFolder(t);
  await using na = await startTestAuthority({ clock: REAL_TIME });
  await issued(recognize(na));
  const offer = ['agreement', 'offer', 'beta', '--capability', 'read'];
  await run(na, [...offer, '--out', at('offer.json')]);
  await run(na, ['agreement', 'accept', at('offer.json'), '--out', at('agreement.json')]);
  const verify = ['agreement', 'verify', at('agreement.json'), '--responder-key', na.audience];
  await run(na, verify);
  assert.equal(outcome(await stage(na, await succession(na))), '200');
  await activated(na);
  await run(na, verify);
  assert.equal(outcome(await step(na, 'finish')), '200');
  await run(na, verify);
});

test('evidence is signed as stated and verified against keys and the graph', async (t) => {
  const { at, write } = recordFolder(t);
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const decision = write(
    'decision.json',
    '{"source_sovereign_id":"alpha","target_sovereign_id":"Zürich","verdict":"block","hop_count":2.0,' +
      '"evaluated_at":"2026-01-15T12:00:00+00:00"}',
  );
  const built = await run(na, [
    ...['evidence', 'build', decision, '--graph-digest', 'sha256:00', '--out', at('evidence.json')],
  ]);
  assert.equal(built.evaluated_at, '2026-01-15T12:00:00+00:00');
  assert.equal(built.graph_digest, 'sha256:00');
  const verify = ['evidence', 'verify', at('evidence.json'), '--expect-graph-digest'];
  const asked = [...verify, 'sha256:00', '--issuer-key', na.audience];
  const [people, genuine, otherGraph] = await Promise.all([
    runCommand(asked, settingsOf(na)),
    runCommand([...asked, '--accept-denial'], settingsOf(na)),
    refusedFor(na, [...verify, 'other']),
  ]);
  const what = `evidence ${built.evidence_id} of alpha, block.\n`;
  assert.deepEqual([people.code, people.stdout], [EXIT.refused, `Refused (block): ${what}`]);
  assert.deepEqual([genuine.code, genuine.stdout], [EXIT.done, `Accepted: ${what}`]);
  assert.equal(otherGraph, 'graph_digest_mismatch');
});

test('commands can be piped: records go to stdout, and information for people to stderr', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  await issued(recognize(na));
  const program = [process.execPath, ...PROGRAM].map((word) => `"${word}"`).join(' ');
  const line =
    `${program} agreement offer beta --capability read --capability "écrire" ` +
    `| ${program} agreement accept - ` +
    `| ${program} agreement verify - --responder-key ${na.audience}`;
  const { stdout, stderr } = await shell(line, settingsOf(na));
  assert.match(stdout, /^Accepted: agreement [0-9a-f-]{36}\.\n$/);
  const notes = stderr.trimEnd().split('\n').sort();
  assert.equal(notes.length, 2, stderr);
  assert.match(
    notes[0] ?? '',
    /^Agreement .* created\. alpha and beta agree on read, écrire until /,
  );
  assert.match(notes[1] ?? '', /^Offer .* created\. alpha offers beta read, écrire\. Acceptable /);
});

function shell(line: string, environment: Readonly<Record<string, string>>) {
  const env = { ...process.env, ...environment };
  return new Promise<{ stdout: string; stderr: string }>((resolve, reject) => {
    execFile('sh', ['-c', line], { env }, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr });
      else reject(new Error(`${error.message}: ${stderr}`));
    });
  });
}

for (const [command, message] of [
  ['agreement offer beta', /required option '--capability <name>'/],
  ['agreement offer --capability a', /missing required argument 'responder'/],
  ['agreement offer beta --capability a --valid-from yesterday', /must be a time such as/],
  ['agreement offer beta --capability a --expires-at 2026-13-01', /must be a time such as/],
  ['agreement offer beta --capability a --validity-hours 0', /from 1 to 87600/],
  [
    'agreement offer beta --capability a --validity-hours 1 --valid-until 2099-01-01',
    /cannot be used with option '--valid-until <time>'/,
  ],
  ['agreement verify a.json --offerer-key abc', /It must be a public key/],
  ['boundary decide a.json', /missing required argument 'capability'/],
  ['boundary verify', /missing required argument 'file'/],
  ['evidence build', /missing required argument 'decision'/],
  ['disclosure prove c.json read', /required option '--prover <name>'/],
  ['disclosure prove c.json read --prover beta', /--committed or --agreement is required/],
  [
    'disclosure prove c.json read --prover beta --committed read --agreement a.json',
    /cannot be used with option '--committed <name>'/,
  ],
  ['disclosure verify - -', /Only one of the files can be standard input/],
  ['consensus vote j.json maybe', /Allowed choices are approve, reject/],
  ['consensus prove j.json --validator a --threshold 1', /missing required argument 'vote'/],
  ['consensus prove j.json v.json --validator a', /required option '--threshold <n>'/],
  ['consensus verify c.json', /required option '--validator-key <name=key>'/],
  [`consensus verify c.json --validator-key ${SOME_KEY}`, /must have the form name=key/],
  [
    `consensus verify c.json --validator-key a=${SOME_KEY} --validator-key a=${SOME_KEY}`,
    /Two --validator-key options are for the same validator/,
  ],
  ['data-usage license', /Use --licensee to license/],
  ['data-usage license --show --licensee beta', /cannot be used with option '--licensee/],
  ['data-usage license --licensee beta --max-volume=-1', /must be a whole number, 0 or more\./],
  ['data-usage declare s.json', /required option '--access <type>'/],
  ['data-usage verify i.json', /missing required argument 'policy'/],
] as const) {
  test(`mesh-na ${command} is wrong usage`, async () => {
    const { exit, code, message: said } = await endOf(command.split(' '));
    assert.deepEqual([exit, code], [EXIT.usage, 'usage']);
    assert.match(said, message);
  });
}

test('a file without what a command needs is not sent', async (t) => {
  const { write, at } = recordFolder(t);
  await using folder = networkFolder('alpha');
  const operator = ['--data-dir', folder.path];
  const empty = write('empty.json', '{}');
  const twice = write('twice.json', '{"a":1,"a":1}');
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['agreement', 'counter', empty, ...operator], /empty\.json does not contain an offer$/],
    [['disclosure', 'commit', empty, ...operator], /empty\.json does not contain an agreement$/],
    [
      ['data-usage', 'declare', empty, '--access', 'read', ...operator],
      /does not contain a JSON list of objects$/,
    ],
    [
      ['data-usage', 'declare', write('l.json', '[1.0]'), '--access', 'read', ...operator],
      /does not contain a JSON list of objects$/,
    ],
    [
      ['agreement', 'verify', write('list.json', '[]')],
      /list\.json does not contain a JSON object$/,
    ],
    [['boundary', 'verify', twice], /twice\.json cannot be read as JSON/],
    [
      ['policy', 'publish', '--file', write('policy.json', '{"allowed_port":[1]}'), ...operator],
      /policy\.json does not contain a policy: none has a member allowed_port$/,
    ],
    [['evidence', 'verify', at('absent.json')], /absent\.json cannot be read as JSON \(ENOENT\)$/],
  ];
  for (const [args, message] of cases) {
    const { exit, message: said } = await endOf(args);
    assert.equal(exit, EXIT.unusable, said);
    assert.match(said, message);
  }
});
