/** Many nodes at once. */
import type { JsonObject } from '../../src/base/json/value.ts';
import type { TestAuthority } from './authority.ts';
import { newKey, nodeRequest, operate, type TestNode } from './requests.ts';

/** Nodes that have joined at the same time, with the invites of one request. */
export async function joinedNodes(
  na: TestAuthority,
  count: number,
  terms: JsonObject = {},
): Promise<TestNode[]> {
  const call = { operator: na.standard };
  const { body } = await operate(na, '/admin/invite', { ...terms, count }, call);
  const joins = body.tokens.map(async ({ token_id }: { token_id: string }) => {
    const key = newKey();
    const joined = await nodeRequest(na, '/join', key, { invite_token: token_id });
    return { key, certId: joined.body.cert_id };
  });
  return Promise.all(joins);
}
