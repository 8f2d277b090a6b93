/** Judges the proofs of a request: the claims that its handler gets. */
import { judgeNode } from './auth/node.ts';
import { type JudgedHeaders, judgeSignature } from './auth/operator.ts';
import { requestIdentityOf } from './auth/request-identity.ts';
import type { Edge } from './edge.ts';
import type { Received } from './exchange.ts';
import { hasLargeBody, senderOf } from './operator-throttle.ts';
import type { NodeProofRule } from './route.ts';

/** An unproven request is passed on without its body, which nobody will read. */
export function judgeOperatorProof(edge: Edge, received: Received, judged: JudgedHeaders): void {
  const { exchange, route, request } = received;
  const { operatorHeaders: headers, remoteAddr } = exchange;
  if (headers === null) return;
  const { keyId, nonce, signature } = headers;
  const { verdict, version } =
    judged.verdict === 'valid'
      ? judgeSignature(headers, request, edge.settings.operatorAuth)
      : { verdict: judged.verdict, version: null };
  if (verdict === 'valid') {
    const sender = senderOf(remoteAddr, keyId);
    if (hasLargeBody(received)) edge.unprovenBodies.giveBack(sender, request.now);
    edge.unprovenBodies.proved(sender, request.now);
  } else {
    request.body = {};
  }
  request.operator = {
    keyId,
    signedAt: judged.signedAt,
    nonce,
    verdict,
    signatureVersion: version,
    scope: route.path,
    remoteAddr,
    sending: route.keepsAnswer ? requestIdentityOf(request, signature, exchange.isRepeat) : null,
  };
}

export function judgeNodeProof(
  edge: Edge,
  received: Received,
  { keyOf, form }: NodeProofRule,
): void {
  const { exchange, route, body, request } = received;
  const { nodeProof, isRepeat, takesBody } = exchange;
  if (!takesBody || body === 'too_large') return;
  const key = keyOf(request);
  if (key === null || (nodeProof === '' && form === 'header if sent')) return;
  const repeat = route.keepsAnswer ? isRepeat : null;
  request.node = judgeNode(key, nodeProof, request, repeat, body, edge.settings.nodeAuth);
}
