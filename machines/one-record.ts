/** Subjects that are one record, which a later one replaces, or which is final. */
import { setup } from 'xstate';

interface OneRecordOptions<Subject, State extends string> {
  readonly id: string;
  /** The context before there is a record. */
  readonly none: Subject;
  /** The state in which there is one. */
  readonly state: State;
  /** Whether the first record stays for good. */
  readonly isFinal: boolean;
}

export function oneRecordMachine<Subject extends object, State extends string>({
  id,
  none,
  state,
  isFinal,
}: OneRecordOptions<Subject, State>) {
  const record = setup({
    types: {} as {
      context: Subject;
      events: { readonly type: 'record'; readonly record: Subject };
      emitted: { readonly type: 'recorded' | 'already_recorded' };
      tags: 'terminal';
    },
  });
  const accepting = record.createStateConfig({
    on: {
      record: {
        target: state,
        actions: [record.assign(({ event }) => event.record), record.emit({ type: 'recorded' })],
      },
    },
  });
  const final = record.createStateConfig({
    tags: 'terminal',
    on: { record: { actions: record.emit({ type: 'already_recorded' }) } },
  });
  return record.createMachine({
    id,
    initial: 'absent',
    context: none,
    states: { absent: accepting, [state]: isFinal ? final : accepting },
  });
}
