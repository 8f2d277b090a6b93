/** Which addresses a webhook may lead to, unless private ones are allowed [events-5]. */
import ipaddr from 'ipaddr.js';

/** NAT64: the last four bytes are an IPv4 address, which is the one that is reached. */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::');
const NAT64_BITS = 96;
const IPV4_AT = 12;
const IPV4_BYTES = 4;

/** All that is public in IPv6 is in it; what is outside of it, such as IPv4 in another form, is a network's own. */
const GLOBAL = ipaddr.IPv6.parse('2000::');
const GLOBAL_BITS = 3;

/** Public by its range, but answered by the host of a virtual machine, with what is meant for that machine alone. */
const OF_CLOUDS: ReadonlySet<string> = new Set(['168.63.129.16']);

/** Whether everybody on the internet can reach it; a text that is no address is not. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const found = reached(address);
  if (found.range() !== 'unicast' || OF_CLOUDS.has(found.toString())) return false;
  return found.kind() === 'ipv4' || (found as ipaddr.IPv6).match(GLOBAL, GLOBAL_BITS);
}

/** The last four bytes in hex: where they are decimal, the library takes ten zeros before them for a mapped address. */
function inHex(address: string): string {
  if (!address.includes(':')) return address;
  return address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)/, (_dotted, ...bytes) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, IPV4_BYTES).map(Number);
    return `${(256 * a + b).toString(16)}:${(256 * c + d).toString(16)}`;
  });
}

/** IPv4 addresses that are written as IPv6 become IPv4. */
function reached(address: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const parsed = ipaddr.process(inHex(address));
  if (parsed.kind() === 'ipv4') return parsed;
  const long = parsed as ipaddr.IPv6;
  if (!long.match(NAT64, NAT64_BITS)) return long;
  return ipaddr.fromByteArray(long.toByteArray().slice(IPV4_AT));
}
