/** A thread that signs requests, in batches and on demand, so that their timestamps are fresh. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemRuntime } from '../../src/base/runtime.ts';
import { signingNode } from './fleet-folder.ts';
import { KINDS, type Kind, mixedRequests } from './mix.ts';
import { bytesOf } from './requests.ts';
import type { SignedBatch, SigningTask, ToSigner } from './signing-threads.ts';

const port = parentPort;
if (port === null) throw new Error('Requests are signed on a worker thread');
const { nodes, options, site } = workerData as SigningTask;
const requests = mixedRequests(
  nodes.map((node) => ({
    ...signingNode(node),
    ...(node.session !== undefined && { session: node.session }),
  })),
  options,
);

/** Requests without a signature, which are always the same. */
const unsigned = new Map<Kind, Buffer>();

port.on('message', (message: ToSigner) => {
  if (message.type === 'renewed') requests.renewed(message.node, message.certId);
  else send(batchOf(message.count));
});

function batchOf(count: number): SignedBatch {
  const began = systemRuntime.elapsed();
  const parts: Buffer[] = [];
  const ends = new Uint32Array(count);
  const kinds = new Uint8Array(count);
  const signers = new Int32Array(count);
  let end = 0;
  for (let index = 0; index < count; index += 1) {
    const { kind, node, request } = requests.next();
    const bytes = unsigned.get(kind) ?? bytesOf(request, site);
    if (node < 0) unsigned.set(kind, bytes);
    parts.push(bytes);
    end += bytes.length;
    ends[index] = end;
    kinds[index] = KINDS.indexOf(kind);
    signers[index] = node;
  }
  const bytes = new Uint8Array(end);
  for (const [index, part] of parts.entries()) bytes.set(part, index === 0 ? 0 : ends[index - 1]);
  return { bytes, ends, kinds, nodes: signers, tookMs: systemRuntime.elapsed() - began };
}

function send(batch: SignedBatch): void {
  const { bytes, ends, kinds, nodes: signers } = batch;
  port?.postMessage(batch, [bytes.buffer, ends.buffer, kinds.buffer, signers.buffer]);
}
