/** A genesis block for authorities that tests open without a data folder. */
import { formatInstant } from '../../src/base/timestamp.ts';
import { type GenesisBlock, readGenesisBlock } from '../../src/protocol/records/genesis.ts';

export function unsignedGenesis(networkName: string, authorityKey: string): GenesisBlock {
  const genesis = readGenesisBlock({
    network_name: networkName,
    network_version: 'v0.1',
    root_public_key: '',
    network_authority: {
      public_key: authorityKey,
      valid_from: formatInstant(0),
      valid_to: '2100-01-01T00:00:00Z',
    },
    policy_manifest: { hash: '' },
  });
  if (genesis === null) throw new Error('The genesis block is not complete');
  return genesis;
}
