import type { JsonObject } from '../../../src/base/json/value.ts';

/** The documents as a reader receives them. */
export interface Shown {
  readonly genesis: JsonObject;
  readonly authority_keys: JsonObject;
  readonly crl: JsonObject;
}

export function certificatesOn(list: JsonObject | null): readonly string[] {
  const entries = (list?.revoked_certificates ?? []) as unknown as readonly {
    certificate_id: string;
  }[];
  return entries.map(({ certificate_id }) => certificate_id);
}
