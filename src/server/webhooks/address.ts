/** Which addresses a webhook may use, unless private ones are allowed [events-5]. */
import ipaddr from 'ipaddr.js';

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
