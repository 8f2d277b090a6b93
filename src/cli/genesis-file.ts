import { createVerifier } from '../client/offline.ts';
import { type GenesisBlock, readGenesisBlock } from '../protocol/records/genesis.ts';
import { notHolding, readJsonFile } from './json-file.ts';

/** The genesis in a file that its user vouches for. */
export async function readGenesisFile(file: string): Promise<GenesisBlock> {
  const genesis = readGenesisBlock(await readJsonFile(file));
  if (genesis === null || createVerifier().genesis(genesis) !== 'valid') {
    throw notHolding(file, 'a genesis that is signed by its root key');
  }
  return genesis;
}
