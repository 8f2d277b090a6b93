export function builtProgram(): string;
export const BESIDE: readonly string[];
export const REQUIRING: string;
