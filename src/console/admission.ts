/**
 * Who may use the console. Other users of the machine and pages of other sites can reach its port, so it answers only
 * a browser that has exchanged the token, which works once, for a cookie. Browsers send a cookie to every port of a
 * host, so the cookie is limited to a path that nobody else knows.
 */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Runtime } from '../base/runtime.ts';

const COOKIE = 'mesh-console';
const SECRET_BYTES = 32;
const PATH_BYTES = 12;

export type Admission = ReturnType<typeof createAdmission>;

export function createAdmission(runtime: Runtime) {
  const secret = () => runtime.randomBytes(SECRET_BYTES).toString('base64url');
  const token = secret();
  const session = secret();
  const root = `/${runtime.randomBytes(PATH_BYTES).toString('hex')}/`;
  let isUsed = false;
  return {
    /** What the first browser exchanges for the cookie. */
    token,
    /** The path below which all pages are, with slashes at both ends. */
    root,
    /** The value of `Set-Cookie`; null for a token that is wrong or was used. */
    exchange(given: string): string | null {
      if (isUsed || !isSame(given, token)) return null;
      isUsed = true;
      return `${COOKIE}=${session}; Path=${root}; HttpOnly; SameSite=Strict`;
    },
    hasCookie: ({ headers }: IncomingMessage): boolean =>
      cookiesOf(headers.cookie).some((value) => isSame(value, session)),
  };
}

/** Why a request is refused before anything else is looked at; null if it is not. */
export function foreignRequest(request: IncomingMessage, port: number): string | null {
  const { host = '', origin } = request.headers;
  // Another name would be one that somebody has pointed at this machine.
  if (host !== `127.0.0.1:${port}` && host !== `[::1]:${port}`) {
    return `This console answers only at its own address, http://127.0.0.1:${port}/.`;
  }
  const isChange = request.method !== 'GET' && request.method !== 'HEAD';
  if (origin === undefined ? isChange : origin !== `http://${host}`) {
    return 'This console answers only its own pages.';
  }
  return null;
}

function cookiesOf(header = ''): string[] {
  return header
    .split(/; */)
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1));
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
