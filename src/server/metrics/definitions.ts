/** Definitions of metrics as data, and their registration. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export function counter<const Label extends string = never>(
  name: string,
  help: string,
  ...labelNames: Label[]
) {
  return (registers: Registry[]) => new Counter<Label>({ name, help, labelNames, registers });
}

export function gauge<const Label extends string = never>(
  name: string,
  help: string,
  ...labelNames: Label[]
) {
  return (registers: Registry[]) => new Gauge<Label>({ name, help, labelNames, registers });
}

export function histogram<const Label extends string = never>(
  name: string,
  help: string,
  buckets: readonly number[],
  ...labelNames: Label[]
) {
  const settings = { name, help, labelNames, buckets: [...buckets] };
  return (registers: Registry[]) => new Histogram<Label>({ ...settings, registers });
}

/** Creates the defined metrics in this registry. */
export function register<Definitions extends Record<string, (registers: Registry[]) => unknown>>(
  registry: Registry,
  definitions: Definitions,
) {
  const entries = Object.entries(definitions);
  const created = entries.map(([name, create]) => [name, create([registry])]);
  return Object.fromEntries(created) as {
    readonly [Name in keyof Definitions]: ReturnType<Definitions[Name]>;
  };
}
