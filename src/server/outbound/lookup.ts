/**
 * Which addresses strangers may be at, unless private ones are allowed [events-5], [core-4-13-3], and what their host
 * names resolve to.
 */
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { bareHost } from '../../base/bare-host.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { createTurns } from '../../base/work.ts';

/** None of the name's addresses may be used. The message is the rest of a sentence, for the log. */
export class PrivateAddress extends Error {
  constructor({ setting }: Reach) {
    super(`its name resolves to a private address, which only ${setting} allows`);
  }
}

interface Resolver {
  resolve(host: string): Promise<readonly LookupAddress[]>;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

const SYSTEM: Resolver = {
  resolve: (host) => lookup(host, { all: true }),
  elapsed: systemRuntime.elapsed,
};

/** A name that takes longer is slow the next time, too. */
const SLOW_MS = 1000;

/**
 * For `node:http` and `node:net`, which connect to exactly these addresses, so DNS rebinding has no effect. The system
 * resolver occupies a thread of the pool that also does disk I/O until the name server answers, so names are resolved
 * one at a time; slow ones in a line of their own, so that those whose name servers do not answer hold up no others.
 */
export function createLookup(
  reach: Reach,
  { resolve, elapsed }: Resolver = SYSTEM,
): LookupFunction {
  const asked = new Map<string, Promise<readonly LookupAddress[]>>();
  const slow = new Set<string>();
  const [turns, slowTurns] = [createTurns(), createTurns()];

  async function timed(host: string): Promise<readonly LookupAddress[]> {
    const began = elapsed();
    try {
      return await resolve(host);
    } finally {
      asked.delete(host);
      if (elapsed() - began > SLOW_MS) slow.add(host);
      else slow.delete(host);
    }
  }

  function addressesOf(host: string): Promise<readonly LookupAddress[]> {
    const line = slow.has(host) ? slowTurns : turns;
    const found = asked.get(host) ?? line.run(() => timed(host));
    asked.set(host, found);
    return found;
  }

  async function allowed(host: string): Promise<LookupAddress[]> {
    const found = await addressesOf(host);
    const kept = found.filter(({ address }) => reach.allowsPrivate || isPublicAddress(address));
    if (kept.length === 0) throw new PrivateAddress(reach);
    return kept;
  }

  return (host, options, answer) => {
    allowed(host).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) answer(null, addresses);
        else answer(null, first?.address ?? '', first?.family);
      },
      (cause) => answer(cause, ''),
    );
  };
}

/** NAT64: the last four bytes are the IPv4 address that is actually reached. */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::');
const NAT64_BITS = 96;
const IPV4_AT = 12;
const IPV4_BYTES = 4;

/** Contains all public IPv6 addresses; those outside of it, such as embedded IPv4 addresses, may be private. */
const GLOBAL = ipaddr.IPv6.parse('2000::');
const GLOBAL_BITS = 3;

/** In a public range, but served by the cloud host with data meant only for the virtual machine. */
const OF_CLOUDS: ReadonlySet<string> = new Set(['168.63.129.16']);

/** Whether the text is an address on the public internet; false if it is not an address at all. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const found = reached(address);
  if (found.range() !== 'unicast' || OF_CLOUDS.has(found.toString())) return false;
  return found.kind() === 'ipv4' || (found as ipaddr.IPv6).match(GLOBAL, GLOBAL_BITS);
}

/** Where strangers may be. */
export interface Reach {
  /** Whether they may be on this machine or its private network, and may lack TLS. */
  readonly allowsPrivate: boolean;
  /** The setting that allows it. */
  readonly setting: 'MESH_WEBHOOK_PRIVATE=1' | 'MESH_FEDERATION_PRIVATE=1';
}

/** Why nothing may be sent to the URL, whatever its name resolves to; null if it may. */
export function urlProblem(
  { protocol, hostname }: URL,
  { allowsPrivate, setting }: Reach,
): string | null {
  if (protocol !== 'https:' && !(protocol === 'http:' && allowsPrivate)) {
    return `must be an https URL, or http with ${setting}`;
  }
  const address = bareHost(hostname);
  if (isIP(address) !== 0 && !allowsPrivate && !isPublicAddress(address)) {
    return `names a private address, which only ${setting} allows`;
  }
  return null;
}

/** Rewrites a decimal IPv4 suffix in hex, because the library takes one after ten zero bytes for a mapped address. */
function inHex(address: string): string {
  if (!address.includes(':')) return address;
  return address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)/, (_dotted, ...bytes) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, IPV4_BYTES).map(Number);
    return `${(256 * a + b).toString(16)}:${(256 * c + d).toString(16)}`;
  });
}

/** The address that is actually reached: IPv4 addresses embedded in IPv6 become IPv4. */
function reached(address: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const parsed = ipaddr.process(inHex(address));
  if (parsed.kind() === 'ipv4') return parsed;
  const long = parsed as ipaddr.IPv6;
  if (!long.match(NAT64, NAT64_BITS)) return long;
  return ipaddr.fromByteArray(long.toByteArray().slice(IPV4_AT));
}
