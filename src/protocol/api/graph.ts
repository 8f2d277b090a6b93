/** The recognition graph and what is derived from it [core-6]. */
import Type from 'typebox';
import { Dashboard } from '../rows/dashboard.ts';
import { Atlas, Connectome, RecognitionGraph, TrustAnswer } from '../rows/graph.ts';
import { publicDocument, publicQuery } from './define.ts';
import { choice, instant, needed, type Parameter } from './parameters.ts';

export const readRecognitionGraph = publicDocument('GET /recognition-graph', {
  growsWithNetwork: true,
  summary: 'The recognition graph as it is',
  answer: RecognitionGraph,
});

export const readConnectome = publicDocument('GET /connectome.json', {
  growsWithNetwork: true,
  summary: 'The graph sorted and counted, and whom each imported revocation affects',
  answer: Connectome,
});

/** The most treaties that one question may leave out. */
export const MOST_LEFT_OUT = 16;

const without: Parameter<readonly string[], readonly string[]> = {
  schema: Type.Array(Type.String(), {
    maxItems: MOST_LEFT_OUT,
    description: 'Id of a treaty that is left out, as if it had ended; may be sent repeatedly',
  }),
  refusal: 'invalid_without',
  read(given) {
    const distinct = [...new Set(given)];
    return distinct.length <= MOST_LEFT_OUT ? distinct : undefined;
  },
};

/** The parameters of a question beyond its two sovereigns. */
export const FURTHER_QUESTION = {
  without,
  as_of: instant('invalid_as_of', 'Earlier time for which to answer, as a timestamp'),
};

export const EVALUATING = 'Sovereign that evaluates (also: source)';
export const EVALUATED = 'Sovereign that is evaluated (also: target)';

function sovereign(description: string, alias: string) {
  const schema = Type.String({ description });
  return { ...needed(schema, 'missing_trust_path_parameters', (name) => name), alias };
}

/** Whether one sovereign trusts another. */
export interface TrustQuestion {
  readonly from: string;
  readonly to: string;
  /** At another time, without some treaties, or why; null for the path as it is. */
  readonly further: FurtherQuestion | null;
}

export interface FurtherQuestion {
  readonly explain: boolean;
  /** Ids of treaties to leave out. */
  readonly without: readonly string[];
  /** Milliseconds since the epoch; null for now. */
  readonly asOf: number | null;
}

export const trustPath = publicQuery('GET /connectome/trust-path', {
  summary: 'The shortest path of active treaties between two sovereigns',
  description: `As it is, as it was, or as it would be.

With \`explain\`, \`without\` or \`as_of\` the answer also cites the digest of the recognition graph. \`explain=1\` adds how
long the trust lasts, the scopes of the treaties, which treaties were considered and which test each failed, and the
smallest set of treaties whose end would cut the trust. Questions count in the bucket TRUST_PATH, and explanations also in
EXPLAIN, per address.`,
  query: {
    from: sovereign(EVALUATING, 'source'),
    to: sovereign(EVALUATED, 'target'),
    explain: choice(['0', '1'], 'invalid_explain', '1 to have the answer explained'),
    ...FURTHER_QUESTION,
  },
  derive({ from, to, explain, without, as_of }): TrustQuestion {
    const further = { explain: explain === '1', without, asOf: as_of };
    const isFurther = further.explain || without.length > 0 || as_of !== null;
    return { from, to, further: isFurther ? further : null };
  },
  answer: TrustAnswer,
  refusals: ['treaty_not_found'],
});

export const readAtlas = publicDocument('GET /atlas.json', {
  growsWithNetwork: true,
  summary: 'Summary of the graph with the digest of its canonical form',
  answer: Atlas,
});

export const readDashboard = publicDocument('GET /dashboard.json', {
  summary: 'Health and trust of this sovereign: the model of the dashboard',
  answer: Dashboard,
});
