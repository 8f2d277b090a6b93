/**
 * The bulletin [core-5-14]. It is signed on request if something has changed, at most once a second, and all nodes
 * receive the same bytes. It contains only facts that are on disk and already served.
 */

import type { RecordSigner } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import {
  type DocumentPublisher,
  type PublishedDocument,
  publishedDocument,
} from '../../protocol/contract/documents.ts';
import { type Bulletin, bulletinText } from '../../protocol/records/bulletin.ts';
import { signatureOver, singleKeyOf } from '../../protocol/records/signed-record.ts';
import { isSignerUnavailable } from '../../protocol/refusals.ts';
import type { Handler } from '../engine/admission.ts';
import type { Subject } from '../subjects/kinds.ts';
import type { Revocations } from './crl.ts';

/** The shortest time between two bulletins, in milliseconds. */
const PERIOD = 1000;

interface BulletinOptions {
  readonly networkName: string;
  readonly revocations: Pick<Revocations, 'newestShown'>;
  readonly signer: RecordSigner;
  readonly publisher: DocumentPublisher;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

interface PublishedBulletin {
  readonly facts: Facts;
  readonly issuedAt: number;
  readonly document: PublishedDocument;
}

type Facts = Omit<Bulletin, 'issued_at' | 'signature'>;

export function createBulletinIssuer(options: BulletinOptions) {
  const { signer, publisher, elapsed } = options;
  let logSize = 0;
  let policyId: string | null = null;
  let genesisDigest = '';
  let authorityKeysDigest: string | null = null;
  let nextAt = -Infinity;
  let published: PublishedBulletin | null = null;

  function currentFacts(): Facts {
    const { sequence, digest } = options.revocations.newestShown();
    return {
      version: 1,
      network_name: options.networkName,
      crl_sequence: sequence,
      crl_digest: digest,
      policy_id: policyId,
      genesis_digest: genesisDigest,
      log_size: logSize,
      ...(authorityKeysDigest !== null && { authority_keys_digest: authorityKeysDigest }),
    };
  }

  function signed(facts: Facts, at: number): PublishedDocument {
    const unsigned = { ...facts, issued_at: formatInstant(at) };
    const signature = signatureOver(bulletinText(unsigned), singleKeyOf(signer));
    return publishedDocument(canonicalJson({ ...unsigned, signature }));
  }

  /** Keeps the last bulletin while no newer one can be signed: heartbeats do not wait for a signer. */
  function current(facts: Facts, at: number): PublishedBulletin | null {
    const isOfThePast = published !== null && published.issuedAt <= at;
    if (published !== null && isOfThePast && isSame(published.facts, facts)) return published;
    try {
      return { facts, issuedAt: at, document: signed(facts, at) };
    } catch (cause) {
      if (!isSignerUnavailable(cause)) throw cause;
      return published;
    }
  }

  return {
    policyCommitted(id: string, { value }: Subject<'policy'>) {
      if (value === 'active') policyId = id;
    },
    /** Notes that this many audit log entries were committed. */
    logged(entries: number) {
      logSize += entries;
    },
    /** Notes the digests of the genesis block and the succession statements that are published. */
    named(genesis: string, authorityKeys: string | null) {
      genesisDigest = genesis;
      authorityKeysDigest = authorityKeys;
    },
    /** Publishes a current bulletin, unless the last one was checked less than a second ago. */
    keepCurrent(at: number) {
      const now = elapsed();
      if (now < nextAt) return;
      nextAt = now + PERIOD;
      published = current(currentFacts(), at);
      if (published === null) return;
      publisher.publish('bulletin', { ...published.document, freshUntil: at + PERIOD });
    },
  };
}

export const refreshBulletin: Handler<'refreshBulletin'> = (na, unit) => {
  na.bulletin.keepCurrent(unit.at);
  return null;
};

function isSame(before: Facts, facts: Facts): boolean {
  const names = Object.keys({ ...before, ...facts }) as (keyof Facts)[];
  return names.every((name) => before[name] === facts[name]);
}
