/** The operators of every new network. */
export const FIRST_OPERATORS = [
  { key_id: 'ops-privileged', tier: 'privileged', name: 'operator-privileged' },
  { key_id: 'ops-standard', tier: 'standard', name: 'operator-standard' },
] as const;
