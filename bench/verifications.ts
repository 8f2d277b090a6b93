/**
 * Verification of trust-protocol records with one, two and four signatures: the authority compared to a bare server
 * that performs the same Ed25519 checks on texts in memory and reads the body without parsing it.
 */
import { join } from 'node:path';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  type AgreementRecord,
  acceptCounter,
  agreementText,
  buildCounter,
  buildOffer,
} from '../src/protocol/records/agreement.ts';
import { assembleConsensusProof } from '../src/protocol/records/consensus-proof.ts';
import type { BuildFailure, Issuer } from '../src/protocol/records/issuer.ts';
import { readJustificationProof } from '../src/protocol/records/justification-proof.ts';
import type { SignatureItem } from '../src/protocol/records/record.ts';
import { signedText, singlySignedText } from '../src/protocol/records/signed-record.ts';
import { buildValidatorVote } from '../src/protocol/records/validator-vote.ts';
import type { SignatureCheck } from './bare-server.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { httpRequest } from './fleet.ts';
import { evidenceAbout, issuerNamed, VERIFICATION_PATH, verificationBody } from './load/mix.ts';
import type { Load } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report, starvedNotes } from './report.ts';
import type { Target } from './round.ts';
import { OTHER, startAuthority, startBare, startOther } from './servers.ts';

const CONNECTIONS = 64;
const DAY = 86_400_000;
const CAPABILITIES = Array.from({ length: 8 }, (_, index) => `dataset:${index}:read`);

/** A request, the signatures that must be checked for it, and the expected answer. */
interface Case {
  readonly path: string;
  readonly body: string;
  readonly checks: readonly SignatureCheck[];
  readonly answer: string;
}

export async function benchVerifications(load: Load, settings: Settings): Promise<Report[]> {
  const { cpuProf } = settings;
  const connections = settings.connections ?? CONNECTIONS;
  await using na = await startAuthority(cpuProf === null ? null : join(cpuProf, 'verifications'));
  const cases: Case[] = [];
  for (const { path, body, checks } of verificationRequests()) {
    cases.push({ path, body, checks, answer: await acceptedAnswer(na.url + path, body) });
  }
  await using bare = await startBare({ verifications: cases });
  await using other = await startOther(settings);

  const reports: Report[] = [];
  for (const { path, body, checks, answer } of cases) {
    const request = httpRequest('POST', path, {}, body).toString('base64');
    const verify = (target: Target) => (seconds: number) =>
      load.ask('repeat', { plan: { target, connections, seconds, rate: null }, request, answer });
    const standings = await contest(
      [
        { name: 'NA', run: verify(na) },
        { name: 'bare', run: verify(bare) },
        ...(other ? [{ name: OTHER, run: verify(other) }] : []),
      ],
      { ...settings, progress: (line) => settings.progress(`${path}, ${line}`) },
    );
    const [ours, ...against] = standings as [Measured, ...Measured[]];
    const size = `${Buffer.byteLength(body).toLocaleString('en')} bytes`;
    reports.push({
      benchmark: `verifications POST ${path}`,
      about: `${size}, Ed25519 checks: ${checks.length}; ${connections} connections, closed loop`,
      lines: standings.map(lineOf),
      comparisons: against.map((each) => compare(ours, each, null)),
      notes: [...busyClientNotes(standings), ...starvedNotes(standings)],
    });
  }
  return reports;
}

/** The authority's answer, which must be positive: records that it refuses would skip most of the work. */
async function acceptedAnswer(url: string, body: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', body });
  const answer = await response.text();
  if (/"(accepted|valid)":true/.test(answer)) return answer;
  throw new Error(`${url} does not accept the record: ${answer}`);
}

export function verificationRequests(): Omit<Case, 'answer'>[] {
  const [alpha, beta, gamma] = [issuerNamed('alpha'), issuerNamed('beta'), issuerNamed('gamma')];
  return [
    agreementRequest(alpha, beta, agreementBetween(alpha, beta)),
    evidenceRequest(alpha),
    consensusRequest(alpha, [alpha, beta, gamma]),
  ];
}

function agreementBetween(offerer: Issuer, responder: Issuer): AgreementRecord {
  const terms = {
    capabilities: CAPABILITIES,
    scope: { region: 'eu-west', purpose: 'research' },
    valid_from: formatInstant(offerer.now - 2 * DAY),
    valid_until: formatInstant(offerer.now + DAY),
  };
  const request = {
    responder_sovereign_id: responder.sovereignId,
    ...terms,
    expires_at: formatInstant(offerer.now + DAY),
  };
  const offer = buildOffer(offerer, request, evidenceAbout(offerer, responder.sovereignId));
  const evidence = evidenceAbout(responder, offerer.sovereignId);
  return acceptCounter(offerer, built(buildCounter(responder, offer, terms, evidence)), offer);
}

/** The signatures are tried in order, so the offerer's key first fails with the responder's signature. */
function agreementRequest(offerer: Issuer, responder: Issuer, agreement: AgreementRecord) {
  const text = agreementText(agreement);
  const [byResponder, byOfferer] = agreement.signatures as [SignatureItem, SignatureItem];
  return {
    path: '/agreements/verify',
    body: jsonText({
      agreement,
      offerer_public_keys: [offerer.signer.publicKey],
      responder_public_keys: [responder.signer.publicKey],
    }),
    checks: [check(offerer, text, byOfferer), check(responder, text, byResponder)],
  };
}

function evidenceRequest(issuer: Issuer) {
  const evidence = evidenceAbout(issuer, 'beta');
  const [signature] = evidence.signatures as [SignatureItem];
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
  const ballots = {
    votes,
    required_threshold: votes.length,
    validator_sovereign_ids: validators.map(({ sovereignId }) => sovereignId),
  };
  const { proof } = built(assembleConsensusProof(assembler, justification, ballots));
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
      ...validators.map((issuer, index) => singleCheck(issuer, votes[index])),
    ],
  };
}

function singleCheck(
  issuer: Issuer,
  record: (JsonObject & { readonly signature: SignatureItem | null }) | undefined,
): SignatureCheck {
  if (!record?.signature) throw new Error('The record is not signed');
  return check(issuer, singlySignedText(record), record.signature);
}

function check({ signer }: Issuer, text: string, { sig }: SignatureItem): SignatureCheck {
  return { publicKey: signer.publicKey, text, signature: sig };
}

function built<T extends object>(result: T | BuildFailure<string>): T {
  if ('unbuilt' in result) throw new Error(`A record cannot be built: ${result.unbuilt}`);
  return result;
}
