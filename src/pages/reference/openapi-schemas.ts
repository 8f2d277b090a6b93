/**
 * Converts TypeBox schemas to OpenAPI 3.0.3: a constant becomes an enumeration of one value, a union with null becomes
 * `nullable`, and named records become components.
 */
import type { TObject } from 'typebox';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import * as documents from '../../protocol/answers/documents.ts';
import * as enrollment from '../../protocol/answers/enrollment.ts';
import * as operators from '../../protocol/answers/operators.ts';
import * as recognition from '../../protocol/answers/recognition.ts';
import * as verdicts from '../../protocol/answers/verdicts.ts';
import * as agentDescriptor from '../../protocol/records/agent-descriptor.ts';
import * as agreement from '../../protocol/records/agreement.ts';
import { BoundaryDecision } from '../../protocol/records/boundary-decision.ts';
import * as bulletin from '../../protocol/records/bulletin.ts';
import * as disclosure from '../../protocol/records/capability-disclosure.ts';
import * as consensus from '../../protocol/records/consensus-proof.ts';
import * as dataUsage from '../../protocol/records/data-usage.ts';
import * as genesis from '../../protocol/records/genesis.ts';
import * as joinCertificate from '../../protocol/records/join-certificate.ts';
import * as policyManifest from '../../protocol/records/policy-manifest.ts';
import * as recognitionRecords from '../../protocol/records/recognition.ts';
import { SignatureItem } from '../../protocol/records/record.ts';
import * as revocationFeed from '../../protocol/records/revocation-feed.ts';
import * as revocationList from '../../protocol/records/revocation-list.ts';
import * as revocationListDelta from '../../protocol/records/revocation-list-delta.ts';
import * as trustEvidence from '../../protocol/records/trust-evidence.ts';
import * as validatorVote from '../../protocol/records/validator-vote.ts';
import { Dashboard } from '../../protocol/rows/dashboard.ts';
import {
  Atlas,
  BlastRadiusRow,
  Connectome,
  EdgeRow,
  RecognitionGraph,
  SovereignRow,
  TrustAnswer,
  TrustExplanation,
} from '../../protocol/rows/graph.ts';
import * as recognitionRows from '../../protocol/rows/recognition.ts';

/**
 * Who writes a value: clients may omit members that have a default, because the server fills them in, while answers
 * always have them.
 */
export type Direction = 'sent' | 'answered';

/** Converts the schemas of one document, which share its components. */
export type Schemas = ReturnType<typeof createSchemas>;

export function createSchemas() {
  const components = new Map<string, JsonObject>();

  function referring(schema: unknown, direction: Direction): JsonObject {
    const name = isJsonObject(schema) ? RECORD_NAMES.get(schema.properties) : undefined;
    if (name === undefined) return lowered(schema, direction, referring);
    const component = direction === 'sent' && hasDefaults(schema) ? `${name}Input` : name;
    if (!components.has(component))
      components.set(component, lowered(schema, direction, referring));
    return { $ref: `#/components/schemas/${component}` };
  }

  return {
    /** The schema, with references to components. */
    referring,
    /** Components by name, of everything referred to so far. */
    components: (): JsonObject =>
      Object.fromEntries([...components].sort(([one], [other]) => (one < other ? -1 : 1))),
  };
}

/** Whether a client may omit members that answers always have. */
function hasDefaults(schema: unknown): boolean {
  return JSON.stringify(inFull(schema, 'sent')) !== JSON.stringify(inFull(schema, 'answered'));
}

/** The schema in full, without references. */
export function inFull(schema: unknown, direction: Direction): JsonObject {
  return lowered(schema, direction, inFull);
}

type Lowering = (schema: unknown, direction: Direction) => JsonObject;

function lowered(schema: unknown, direction: Direction, inner: Lowering): JsonObject {
  if (!isJsonObject(schema)) return {};
  const { described, anyOf, description, ...rest } = schema;
  const ofDescription = description === undefined ? {} : { description };
  if (described !== undefined) return inner(described, direction);
  if (Array.isArray(anyOf)) {
    return {
      ...loweredUnion(anyOf, direction, inner),
      ...defaultOf(rest, direction),
      ...ofDescription,
    };
  }
  return { ...loweredPlain(rest, direction, inner), ...ofDescription };
}

function loweredUnion(
  branches: readonly JsonValue[],
  direction: Direction,
  inner: Lowering,
): JsonObject {
  const others = branches.filter((branch) => !isJsonObject(branch) || branch.type !== 'null');
  const isNullable = others.length < branches.length;
  const [only] = others;
  if (others.length === 1) {
    // A reference allows no sibling keywords, so nullable schemas are written out.
    return isNullable ? withNull(lowered(only, direction, inner)) : inner(only, direction);
  }
  const more = others.slice(1).map((branch) => inner(branch, direction));
  const first = isNullable ? withNull(lowered(only, direction, inner)) : inner(only, direction);
  return { anyOf: [first, ...more] };
}

function withNull({ enum: values, ...schema }: JsonObject): JsonObject {
  const listed = Array.isArray(values) ? { enum: [...(values as JsonValue[]), null] } : {};
  return { ...schema, ...listed, nullable: true };
}

function loweredPlain(schema: JsonObject, direction: Direction, inner: Lowering): JsonObject {
  const { const: constant, natural, fresh: _, default: __, ...rest } = schema;
  const fallback = defaultOf(schema, direction);
  if (natural === true) return { type: 'integer', minimum: 0, ...fallback };
  if (constant !== undefined) return { ...rest, enum: [constant], ...fallback };
  if (Array.isArray(rest.enum)) return { type: 'string', ...rest, ...fallback };
  if (rest.type === 'integer') return { ...withBounds(rest), ...fallback };
  if (rest.type === 'array') return { ...rest, items: inner(rest.items, direction), ...fallback };
  if (rest.type === 'object') return { ...loweredObject(rest, direction, inner), ...fallback };
  return { ...rest, ...fallback };
}

/** Defaults are omitted for answers, which always have the member. */
function defaultOf({ default: fallback }: JsonObject, direction: Direction): JsonObject {
  return fallback === undefined || direction === 'answered' ? {} : { default: fallback };
}

const LARGEST_32_BIT = 2 ** 31 - 1;

/** Integers without bounds are limited to safe integers, on the wire as in the program. */
function withBounds({ minimum, maximum, ...rest }: JsonObject): JsonObject {
  const least = typeof minimum === 'number' ? minimum : Number.MIN_SAFE_INTEGER;
  const most = typeof maximum === 'number' ? maximum : Number.MAX_SAFE_INTEGER;
  const isShort = least >= -LARGEST_32_BIT && most <= LARGEST_32_BIT;
  return { ...rest, format: isShort ? 'int32' : 'int64', minimum: least, maximum: most };
}

function loweredObject(schema: JsonObject, direction: Direction, inner: Lowering): JsonObject {
  const { properties, required: _, patternProperties, additionalProperties, ...rest } = schema;
  if (isJsonObject(patternProperties)) {
    const [values = {}] = Object.values(patternProperties);
    return { ...rest, additionalProperties: inner(values, direction) };
  }
  const others = additionalProperties === undefined ? {} : { additionalProperties };
  if (!isJsonObject(properties)) return { ...rest, ...others };
  const demanded = demandedOf(schema, direction);
  return {
    ...rest,
    ...(demanded.length === 0 ? {} : { required: demanded }),
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, member]) => [name, inner(member, direction)]),
    ),
    ...others,
  };
}

/** Names of the required members. */
export function demandedOf(
  { properties = {}, required }: JsonObject,
  direction: Direction,
): readonly JsonValue[] {
  if (!Array.isArray(required) || !isJsonObject(properties)) return [];
  if (direction === 'answered') return required;
  return required.filter((name) => !isMadeUp(properties[String(name)]));
}

function isMadeUp(member: JsonValue | undefined): boolean {
  return isJsonObject(member) && (member.default !== undefined || member.fresh !== undefined);
}

/** Names of the records, rows and answers that are components of the OpenAPI document: those of their exports. */

/** Modules whose schemas are all components. */
const MODULES: readonly object[] = [
  documents,
  enrollment,
  operators,
  recognition,
  verdicts,
  agentDescriptor,
  agreement,
  bulletin,
  disclosure,
  consensus,
  dataUsage,
  genesis,
  joinCertificate,
  policyManifest,
  recognitionRecords,
  revocationFeed,
  revocationList,
  revocationListDelta,
  trustEvidence,
  validatorVote,
  recognitionRows,
];

/** The others, among schemas that are written out where they occur. */
const FURTHER = {
  Atlas,
  BlastRadiusRow,
  BoundaryDecision,
  Connectome,
  Dashboard,
  EdgeRow,
  RecognitionGraph,
  Signature: SignatureItem,
  SovereignRow,
  TrustExplanation,
  TrustPath: TrustAnswer,
};

function isObjectSchema(exported: unknown): exported is TObject {
  return typeof exported === 'object' && exported !== null && 'properties' in exported;
}

/** Keyed by the properties object of a schema, which does not change when the schema becomes optional. */
const RECORD_NAMES: ReadonlyMap<unknown, string> = new Map(
  [...MODULES, FURTHER]
    .flatMap((schemas) => Object.entries(schemas))
    .flatMap(([name, schema]) =>
      isObjectSchema(schema) ? [[schema.properties, name] as const] : [],
    ),
);
