/** Operator requests to replace the authority's key: each step becomes a signed request. */
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { AuthorityKeys } from '../../src/protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../../src/protocol/records/genesis.ts';
import type { Known } from './known.ts';
import { activate, cancel, finish, rollBack, stage } from './model/authority-keys.ts';
import { ask, pick } from './operator-requests.ts';
import { AUTHORITY, NEXT_KEYS, NODES, OPERATORS, ROOT } from './requests.ts';
import type { Sent } from './sent.ts';
import type { OperatorStep, Request } from './steps.ts';
import { type MadeSuccession, madeSuccession } from './successions.ts';
import type { World } from './world.ts';

type Step<Name extends Request['do']> = Extract<Request, { do: Name }>;
type Name = 'stage' | 'cancel' | 'activate' | 'rollBack' | 'finish';

export const SUCCESSION_REQUESTS: {
  readonly [Each in Name]: (
    step: Step<Each>,
    known: Known,
    world: World,
  ) => (step: OperatorStep) => Sent;
} = {
  stage(step, known, world) {
    const { signed, offer } =
      (step.again < 0 ? undefined : pick(known.successions, step.again)) ??
      prepared(step, known, world);
    return ask(world, {
      name: 'stageSuccession',
      tier: 'privileged',
      given: { succession: signed },
      decide: (moment) => stage(moment, offer),
    });
  },
  cancel: (_step, _known, world) =>
    ask(world, { name: 'cancelSuccession', tier: 'privileged', given: {}, decide: cancel }),
  activate: (_step, _known, world) =>
    ask(world, { name: 'activateSuccession', tier: 'privileged', given: {}, decide: activate }),
  rollBack: (_step, _known, world) =>
    ask(world, { name: 'rollBackAuthorityKey', tier: 'privileged', given: {}, decide: rollBack }),
  finish(step, known, world) {
    const despite = step.despite === 'reported' ? known.laggards : step.despite;
    return ask(world, {
      name: 'finishSuccession',
      tier: 'privileged',
      given: { despite },
      decide: (moment) => finish(moment, despite),
      refused(details) {
        if (typeof details.count === 'number') known.laggards = details.count;
      },
    });
  },
};

/** A new succession based on what is published; its key is put in place unless the step says otherwise. */
function prepared(step: Step<'stage'>, known: Known, world: World): MadeSuccession {
  const { documents, now, runtime, folder } = world;
  const to = nextKeyOf(step, known, world);
  const made = madeSuccession(
    {
      genesis: documents.current('genesis') as unknown as GenesisBlock,
      document: documents.current('authority_keys') as unknown as AuthorityKeys,
      now,
      uuid: runtime.uuid,
    },
    { ...step, to, flaw: step.altered },
  );
  if (step.hasKey) folder.put(to);
  // A node's key becomes free again once its certificates are forgotten.
  if (step.key !== 'node') known.successions.push(made);
  return made;
}

function nextKeyOf({ key }: Step<'stage'>, { successions }: Known, { decided }: World) {
  const nodes = [...decided.certificates.values()].map(({ nodeKey }) => nodeKey);
  const isEnrolled = ({ publicKey }: Signer) => nodes.includes(publicKey);
  switch (key) {
    case 'new':
      return NEXT_KEYS[successions.length % NEXT_KEYS.length] ?? AUTHORITY;
    case 'root':
      return ROOT;
    case 'operator':
      return OPERATORS[0]?.key ?? ROOT;
    case 'node':
      return NODES.find(isEnrolled) ?? ROOT;
    case 'first':
      return AUTHORITY;
  }
}
