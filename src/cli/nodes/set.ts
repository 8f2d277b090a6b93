/** `mesh-na node set`: sets the name and labels of a node. */
import { type Command, InvalidArgumentError } from 'commander';
import { isLabel, type NodeLabels } from '../../protocol/rows/node-description.ts';
import { type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { routeCommand } from '../connection/route-command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { keyOrBeginning } from '../kernel/ids.ts';
import { collectAs } from '../kernel/options.ts';
import { asJson, printResult } from '../kernel/output.ts';
import { wholeNodeKey } from './certificate.ts';
import { descriptionLines, labelOption, nodeName } from './descriptions.ts';

interface SetOptions extends OperatorOptions {
  /** False removes it. */
  readonly name?: string | false;
  readonly label?: NodeLabels;
  readonly removeLabel?: readonly string[];
}

export function defineNodeSet(set: Command): void {
  routeCommand(set, 'describeNode', {
    about: 'set the name and labels of a node, which only operators see (standard)',
    values: {
      node_public_key: ['<node>', 'node key, or at least its first 8 characters', keyOrBeginning],
      name: ['--name <name>', 'the new name', nodeName],
    },
    more: (command) =>
      command
        .option('--no-name', 'remove the name')
        .addOption(labelOption('label to set (repeatable)'))
        .option('--remove-label <key>', 'label to remove (repeatable)', collectAs(labelKey)),
    examples: [
      'mesh-na node set qk0yV3pW --name web-1 --label env=prod --label zone=eu-1',
      'mesh-na node set qk0yV3pW --remove-label zone',
    ],
    async sent({ node_public_key }, options: SetOptions) {
      const { name, label = {}, removeLabel = [] } = options;
      const labels = { ...label, ...Object.fromEntries(removeLabel.map((key) => [key, null])) };
      if (name === undefined && Object.keys(labels).length === 0) {
        throw usageFailure('Give a --name, a --label or a --remove-label');
      }
      return {
        node_public_key: await wholeNodeKey(operatorClient(options), node_public_key),
        name: name === false ? '' : name,
        labels,
      };
    },
    show: (options, node) =>
      printResult(options, asJson(node), [
        `key           ${node.node_public_key}`,
        ...descriptionLines(node),
      ]),
  });
}

function labelKey(text: string): string {
  if (isLabel(text) && !text.includes('=')) return text;
  throw new InvalidArgumentError('The key of a label is 1 to 63 of a-z 0-9 . _ / -');
}
