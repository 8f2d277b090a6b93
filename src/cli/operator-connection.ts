/** How every operator command reaches the authority and signs its request. */
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { keyFromSeed } from '../client/keys.ts';
import { createOperatorClient, type OperatorClient } from '../client/operator-client.ts';
import type { SignatureVersion } from '../client/sign-operator.ts';
import { FILES } from '../config/data-folder.ts';
import { readKeyFile } from '../keys/key-file.ts';
import { onLocalFiles, usageFailure } from './exit-codes.ts';
import { FIRST_OPERATORS } from './init-network.ts';
import { dataDirOption, examples, jsonOption, urlOption } from './options.ts';
import type { OutputOptions } from './output.ts';

export interface OperatorOptions extends OutputOptions {
  readonly url: string;
  readonly dataDir: string;
  readonly keyId: string;
  readonly keyFile?: string;
  readonly signatureVersion: '1' | '2';
}

/** Ends the definition of a command with the options of every operator command and its examples. */
export function addOperatorOptions(command: Command, lines: readonly string[]): void {
  command
    .addOption(urlOption())
    .addOption(dataDirOption())
    .addOption(
      new Option('--key-id <id>', 'operator key id that signs')
        .env('MESH_OPERATOR_KEY_ID')
        .default(FIRST_OPERATORS[0].key_id),
    )
    .addOption(
      new Option(
        '--key-file <file>',
        'its private key (default: the one that init made in the data folder)',
      ).env('MESH_OPERATOR_KEY_FILE'),
    )
    .addOption(
      new Option(
        '--signature-version <version>',
        'payload version; 1 for an authority that does not accept 2',
      )
        .choices(['1', '2'])
        .default('2'),
    )
    .addOption(jsonOption())
    .addHelpText('after', examples(lines));
}

export function operatorClient(options: OperatorOptions): OperatorClient {
  const { url, keyId } = options;
  const keyFile = options.keyFile ?? madeKeyFile(options);
  const key = keyFromSeed(onLocalFiles(() => readKeyFile(keyFile)));
  const signatureVersion = Number(options.signatureVersion) as SignatureVersion;
  return createOperatorClient({ url, keyId, key, signatureVersion });
}

function madeKeyFile({ dataDir, keyId }: OperatorOptions): string {
  const operator = FIRST_OPERATORS.find(({ key_id }) => key_id === keyId);
  if (operator === undefined) throw usageFailure(`--key-file is needed for key id ${keyId}`);
  return join(dataDir, FILES.keys, `${operator.name}.key`);
}
