/** Recognition policy [core-4-12]: the last one set is active. */
import { setup } from 'xstate';

export interface StoredRecognitionPolicy {
  readonly policyId: string;
  /** The policy, as served. */
  readonly json: string;
  /** Milliseconds since the epoch. */
  readonly setAt: number;
}

type RecognitionPolicyEvent = {
  readonly type: 'set';
  readonly policy: StoredRecognitionPolicy;
};

const machine = setup({
  types: {} as {
    context: StoredRecognitionPolicy;
    events: RecognitionPolicyEvent;
    emitted: { readonly type: 'set' };
  },
});

const set = {
  target: 'active',
  actions: [machine.assign(({ event }) => event.policy), machine.emit({ type: 'set' })],
};

export const recognitionPolicyMachine = machine.createMachine({
  id: 'recognition-policy',
  initial: 'absent',
  context: { policyId: '', json: '', setAt: 0 },
  states: { absent: { on: { set } }, active: { on: { set } } },
});
