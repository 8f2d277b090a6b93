/** The host of a URL, without the brackets around an IPv6 address. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
