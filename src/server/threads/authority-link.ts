/** The authority, as seen by an edge on another thread. */
import type { RateLimitSettings, RateLimits } from '../../edge/limits/rate-limit.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { Call, CallName, CallOf } from '../../protocol/contract/calls.ts';
import { toCloneable } from './cloneable.ts';
import { arrivedAnswer, heartbeatRow } from './crossing.ts';
import type { AuthorityProcedures } from './messages.ts';
import type { Peer } from './rpc.ts';

export function createAuthorityLink(
  authority: Peer<AuthorityProcedures>,
  settings: RateLimitSettings,
): { readonly call: Call; readonly limits: RateLimits } {
  const isOn: RateLimits['isOn'] = (bucket) => settings[bucket] !== null;
  return {
    call<Name extends CallName>(name: Name, command: CallOf<Name>): Promise<Answer> {
      const crossing =
        name === 'heartbeat'
          ? authority.call('heartbeat', ...heartbeatRow(command as CallOf<'heartbeat'>))
          : authority.call('ask', name, toCloneable(command));
      return crossing.then(arrivedAnswer);
    },
    limits: {
      isOn,
      take: (bucket, key, now) =>
        isOn(bucket) ? authority.call('takeToken', bucket, key, now) : 0,
    },
  };
}
