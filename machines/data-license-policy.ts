/**
 * The data-license policy in force [service-states-other]: the last one created. It exists only in process memory and
 * is lost on restart.
 */
import { setup } from 'xstate';

export interface LicensePolicy {
  /** The signed record as JSON text. */
  readonly json: string;
  /** Milliseconds since the epoch. */
  readonly validUntil: number;
}

type LicensePolicyEvent = { readonly type: 'create'; readonly policy: LicensePolicy };

const machine = setup({
  types: {} as {
    context: LicensePolicy;
    events: LicensePolicyEvent;
    emitted: { readonly type: 'created' };
  },
});

const create = {
  target: 'active',
  actions: [machine.assign(({ event }) => event.policy), machine.emit({ type: 'created' })],
};

export const licensePolicyMachine = machine.createMachine({
  id: 'data-license-policy',
  initial: 'absent',
  context: { json: '', validUntil: 0 },
  states: { absent: { on: { create } }, active: { on: { create } } },
});
