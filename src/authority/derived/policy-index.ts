import type { SubjectFollower } from '../subjects/subjects.ts';

/** The active policy version, as decided so far. */
export interface PolicyIndex {
  readonly follow: SubjectFollower;
  activeId(): string | null;
}

export function createPolicyIndex(): PolicyIndex {
  let active: string | null = null;
  return {
    follow(kind, id, { value }) {
      if (kind === 'policy' && value === 'active') active = id;
    },
    activeId: () => active,
  };
}
