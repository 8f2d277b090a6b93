/** The same request again and again, answered by the authority and by a bare server: documents and verifications. */
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { assembleConsensusProof } from '../src/protocol/records/consensus-proof.ts';
import type { Issuer } from '../src/protocol/records/issuer.ts';
import type { SignatureItem } from '../src/protocol/records/record.ts';
import { signedText, singlySignedText } from '../src/protocol/records/signed-record.ts';
import {
  buildValidatorVote,
  readJustificationProof,
} from '../src/protocol/records/validator-vote.ts';
import type { BareWork, SignatureCheck, StaticAnswer } from './bare-server.ts';
import { contest, type Settings } from './contest.ts';
import { evidenceAbout, issuerNamed, VERIFICATION_PATH, verificationBody } from './load/mix.ts';
import { getRequest, type LoadRequest, postRequest } from './load/requests.ts';
import { bytesOf } from './network.ts';
import type { Report } from './report.ts';
import { runRound, type Target } from './rounds.ts';
import { type AuthorityProcess, OTHER, startAuthority, startBare, startOther } from './servers.ts';

const CONNECTIONS = 64;
const DOCUMENTS = ['/crl', '/genesis'] as const;
const DOCUMENT_TARGET = 0.85;
/** The path at which the bare server sends as many headers as the authority. */
const ALL_HEADERS = '/all-headers';
/** Headers that uWebSockets.js or HTTP itself adds, regardless of the handler. */
const NOT_OURS = new Set(['connection', 'content-length', 'date', 'keep-alive']);

interface Repeated {
  readonly benchmark: string;
  readonly request: LoadRequest;
  /** What every answer must be; anything if it is absent. */
  readonly answer?: string;
  readonly target: number | null;
  /** The request to the bare server that costs it more, by the name of the contestant. */
  readonly further?: { readonly [name: string]: LoadRequest };
}

/** Cached public documents, against static answers of the same bytes. */
export async function benchDocuments(settings: Settings): Promise<Report[]> {
  await using na = await startAuthority(settings);
  const answers = await Promise.all(DOCUMENTS.map((path) => copiesOf(na.url, path)));
  const all = DOCUMENTS.map((path) => ({
    benchmark: `documents GET ${path}`,
    request: getRequest(path),
    target: DOCUMENT_TARGET,
    further: { 'bare, all headers': getRequest(ALL_HEADERS + path) },
  }));
  return await repeat(settings, na, { answers: answers.flat() }, all);
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

/**
 * Verification of records with one and four signatures, against a server that performs the same Ed25519 checks on texts
 * in memory and reads the body without parsing it.
 */
export async function benchVerifications(settings: Settings): Promise<Report[]> {
  await using na = await startAuthority(settings);
  const verifications = await Promise.all(
    verificationRequests().map(async ({ path, body, checks }) => {
      return { path, body, checks, answer: await acceptedAnswer(na.url + path, body) };
    }),
  );
  const all = verifications.map(({ path, body, checks, answer }) => ({
    benchmark: `verifications POST ${path}, Ed25519 checks: ${checks.length}`,
    request: postRequest(path, body),
    answer,
    target: null,
  }));
  return await repeat(settings, na, { verifications }, all);
}

/** The authority's answer, which must be positive: records that it refuses would skip most of the work. */
async function acceptedAnswer(url: string, body: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', body });
  const answer = await response.text();
  if (/"(accepted|valid)":true/.test(answer)) return answer;
  throw new Error(`${url} does not accept the record: ${answer}`);
}

async function repeat(
  settings: Settings,
  na: AuthorityProcess,
  work: BareWork,
  all: readonly Repeated[],
): Promise<Report[]> {
  const { connections = CONNECTIONS } = settings;
  await using bare = await startBare(work);
  await using other = await startOther(settings);

  function asking(target: Target, { request, answer }: Pick<Repeated, 'request' | 'answer'>) {
    const bytes = bytesOf(request);
    const expected = answer === undefined ? null : Buffer.from(answer);
    return async (seconds: number) => {
      let other: string | null = null;
      const result = await runRound(
        { target, connections, seconds, rate: null },
        () => bytes,
        (_, body) => {
          if (expected?.equals(body) === false) other ??= body.toString();
        },
      );
      if (other !== null) throw new Error(`An answer was not the expected one: ${other}`);
      return result;
    };
  }
  const reports: Report[] = [];
  for (const each of all) {
    const { benchmark, target, further = {} } = each;
    const about = `${connections} connections, closed loop`;
    const names = Object.keys(further).map((name) => [name, null]);
    const report = await contest(settings, benchmark, about, [
      {
        name: 'NA',
        run: asking(na, each),
        against: { bare: target, [OTHER]: null, ...Object.fromEntries(names) },
      },
      { name: 'bare', run: asking(bare, each) },
      ...Object.entries(further).map(([name, request]) => ({
        name,
        run: asking(bare, { request }),
      })),
      other && { name: OTHER, run: asking(other, each) },
    ]);
    reports.push(report);
  }
  return reports;
}

/** Requests to verify records, and the signatures that must be checked for them. */
export function verificationRequests() {
  const [alpha, beta, gamma] = [issuerNamed('alpha'), issuerNamed('beta'), issuerNamed('gamma')];
  return [evidenceRequest(alpha), consensusRequest(alpha, [alpha, beta, gamma])];
}

function evidenceRequest(issuer: Issuer) {
  const evidence = evidenceAbout(issuer, 'beta');
  const [signature = null] = evidence.signatures;
  return {
    path: VERIFICATION_PATH,
    body: verificationBody(issuer, evidence),
    checks: [check(issuer, signedText(evidence), signature)],
  };
}

function consensusRequest(assembler: Issuer, validators: readonly Issuer[]) {
  const justification = readJustificationProof({
    proof_id: 'justification',
    decision_id: 'decision',
    trace: {
      trace_id: 'trace',
      decision_id: 'decision',
      agreement_id: 'agreement',
      operator_sovereign_id: assembler.sovereignId,
      traced_at: '2026-01-15T12:00:00Z',
      final_authorized: true,
    },
    proof_issued_at: '2026-01-15T12:00:00Z',
    issuer_sovereign_id: assembler.sovereignId,
  });
  if (justification === null) throw new Error('The justification is not valid');
  const votes = validators.map((issuer) => buildValidatorVote(issuer, justification, true, null));
  const assembled = assembleConsensusProof(assembler, justification, {
    votes,
    required_threshold: votes.length,
    validator_sovereign_ids: validators.map(({ sovereignId }) => sovereignId),
  });
  if ('unbuilt' in assembled) throw new Error(`The proof cannot be built: ${assembled.unbuilt}`);
  const { proof } = assembled;
  const keys = validators.map(({ sovereignId, signer }) => [sovereignId, signer.publicKey]);
  return {
    path: '/consensus/verify',
    body: jsonText({
      proof,
      validator_public_keys: Object.fromEntries(keys),
      assembler_public_keys: [assembler.signer.publicKey],
    }),
    checks: [
      singleCheck(assembler, proof),
      ...votes.map((vote, index) => singleCheck(validators[index] ?? assembler, vote)),
    ],
  };
}

function singleCheck(
  issuer: Issuer,
  record: JsonObject & { readonly signature: SignatureItem | null },
): SignatureCheck {
  return check(issuer, singlySignedText(record), record.signature);
}

function check({ signer }: Issuer, text: string, signature: SignatureItem | null): SignatureCheck {
  if (signature === null) throw new Error('The record is not signed');
  return { publicKey: signer.publicKey, text, signature: signature.sig };
}
