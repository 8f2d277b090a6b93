import type { SubjectFollower } from '../subjects/subjects.ts';

/** The active policy version, including decisions that are not committed yet. */
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
