export function builtProgram(): string;
export const EXTERNAL: readonly string[];
export const REQUIRING: string;
