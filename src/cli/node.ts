/** The node's commands; its key and certificate are in one folder. */
import { type Command, Option } from 'commander';
import { onLocalFiles } from './exit-codes.ts';
import { runJoin, runRenew } from './node-enroll.ts';
import { keyPath, makeNodeKey } from './node-folder.ts';
import { runHeartbeat } from './node-heartbeat.ts';
import { defineNodeList } from './node-list.ts';
import { runAgent } from './node-run.ts';
import { runStatus } from './node-status.ts';
import { addTrustOptions } from './node-trust.ts';
import {
  addFolderOptions,
  type FolderOptions,
  LONGEST_INTERVAL_SECONDS,
  urlOption,
  wholeNumber,
} from './options.ts';
import { printResult } from './output.ts';
import { caOption, waitOption } from './server.ts';

export function addNodeCommands(program: Command): void {
  const node = program
    .command('node')
    .description('act as a node of the network, or list its nodes');
  defineNodeList(node.command('list'));

  const keygen = node
    .command('keygen')
    .description('create the key of this node')
    .action(runKeygen);
  addFolderOptions(keygen, ['mesh-na node keygen --node-dir ./node-1']);

  const join = node
    .command('join')
    .description(
      'join with an invite token and save the certificate; creates a key when there is none',
    )
    .option('--token <token>', 'the invite token (other users of this machine may see it)')
    .option('--token-file <file>', 'file that holds the invite token, - for standard input')
    .addOption(validityOption())
    .addOption(urlOption())
    .addOption(caOption())
    .addOption(waitOption())
    .addOption(proofOption())
    .action(runJoin);
  addFolderOptions(addTrustOptions(join), [
    'mesh-na node join --url https://na.example --root-key "$ROOT_KEY" --token-file invite.txt',
    'mesh-na node join --url https://na.example --genesis genesis.json --token-file invite.txt',
  ]);

  const heartbeat = node
    .command('heartbeat')
    .description('report to the authority that this node is alive')
    .option('--status <text>', 'what to report', 'healthy')
    .option(
      '--every <seconds>',
      'repeat, give or take a tenth, until stopped by a signal',
      wholeNumber(LONGEST_INTERVAL_SECONDS),
    )
    .addOption(urlOption())
    .addOption(caOption())
    .addOption(waitOption())
    .addOption(proofOption())
    .action(runHeartbeat);
  addFolderOptions(heartbeat, ['mesh-na node heartbeat', 'mesh-na node heartbeat --every 120']);

  const renew = node
    .command('renew')
    .description('replace the certificate with a new one with the same roles')
    .addOption(validityOption())
    .addOption(urlOption())
    .addOption(caOption())
    .addOption(waitOption())
    .addOption(proofOption())
    .action(runRenew);
  addFolderOptions(addTrustOptions(renew), ['mesh-na node renew --validity-hours 72']);

  const run = node
    .command('run')
    .description(
      'keep this node enrolled: join, report, renew, and follow its network, until a signal; exit code 4 when it is revoked',
    )
    .option(
      '--token-file <file>',
      'file that holds the invite token, while there is no certificate',
    )
    .option('--status <text>', 'what to report', 'healthy')
    .option(
      '--on-change <command>',
      'run by the shell with what has changed as arguments: certificate, genesis, crl, policy',
    )
    .addOption(validityOption())
    .addOption(urlOption())
    .addOption(proofOption())
    .action(runAgent);
  addFolderOptions(addTrustOptions(run), [
    'mesh-na node run --url https://na.example --root-key "$ROOT_KEY" --token-file invite.txt',
    "mesh-na node run --on-change 'systemctl reload vpn; echo changed:'",
  ]);

  const status = node
    .command('status')
    .description('verify the certificate and the revocation list; exit code 4 when it is not valid')
    .option('--offline', 'verify what the node folder holds; the authority is not asked')
    .option('--crl <file>', 'revocation list in place of that in the node folder, if offline')
    .addOption(urlOption())
    .addOption(caOption())
    .addOption(waitOption())
    .action(runStatus);
  addFolderOptions(addTrustOptions(status), [
    'mesh-na node status --json',
    'mesh-na node status --offline --crl crl.json',
  ]);
}

function validityOption(): Option {
  return new Option(
    '--validity-hours <n>',
    'wanted validity; the invite limits it (default: 168)',
  ).argParser(wholeNumber());
}

function proofOption(): Option {
  return new Option('--proof <form>', 'how the proof of the key is sent')
    .choices(['body', 'header'])
    .default('body');
}

function runKeygen(options: FolderOptions): void {
  const { publicKey } = onLocalFiles(() => makeNodeKey(options.nodeDir));
  const keyFile = keyPath(options.nodeDir);
  printResult(options, { node_public_key: publicKey, key_file: keyFile }, [
    `Node key ${publicKey} created in ${keyFile}.`,
  ]);
}
