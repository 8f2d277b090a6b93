/** The vectors of statements, chains and files are correct [authority-keys-6], according to portable code. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { Value } from 'typebox/value';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { recordSigner, verifyText } from '../src/client/keys.ts';
import { portableSha256 } from '../src/client/sha256.ts';
import {
  AuthorityKeys,
  type ChainPin,
  followChain,
} from '../src/protocol/records/authority-chain.ts';
import {
  type AuthoritySuccession,
  possessionText,
  proveSuccession,
  readAuthoritySuccession,
  signAsFromKey,
  signAsRoot,
  successionDigest,
} from '../src/protocol/records/authority-succession.ts';
import { genesisDigest, readGenesisBlock } from '../src/protocol/records/genesis.ts';
import { instantOf } from '../src/protocol/records/record.ts';
import { signedText } from '../src/protocol/records/signed-record.ts';
import {
  isUnaltered,
  readSignedSuccession,
  readSuccessionRequest,
  signSuccession,
  successionProblem,
} from '../src/protocol/records/succession-request.ts';
import { PROJECT } from './support/project.ts';

interface Pin {
  readonly network_name: string;
  readonly root_key?: string;
  readonly authority_key?: string;
  readonly genesis_digest?: string;
}

interface Vectors {
  readonly keys: { readonly [name: string]: { seed_base64: string; public_base64: string } };
  readonly genesis: JsonObject;
  readonly genesis_digest: string;
  readonly statements: readonly {
    readonly statement: JsonObject;
    readonly terms: string;
    readonly possession_text: string;
    readonly signed_text: string;
    readonly digest: string;
  }[];
  readonly followed: readonly {
    readonly pin: Pin;
    readonly successions: readonly number[];
    readonly now: string;
    readonly keys: JsonObject[];
    readonly current_key: string;
  }[];
  readonly refused: readonly {
    readonly reason: string;
    readonly sequence: number | null;
    readonly pin: Pin;
    readonly successions: readonly unknown[];
    readonly known: readonly number[];
    readonly now: string;
  }[];
  readonly files: { readonly request: JsonObject; readonly succession: JsonObject };
}

const file = readFileSync(new URL('test/vectors/authority-keys.json', PROJECT), 'utf8');
const { vectors } = parseJson(file) as unknown as { vectors: Vectors };
const tools = { verify: verifyText, sha256: portableSha256 };
const signers = Object.values(vectors.keys).map(({ seed_base64, public_base64 }) => {
  const signer = recordSigner(Buffer.from(seed_base64, 'base64'));
  assert.equal(signer.publicKey, public_base64);
  return signer;
});
const signerOf = (key: string) => {
  const found = signers.find(({ publicKey }) => publicKey === key);
  assert.ok(found !== undefined);
  return found;
};
const chain = vectors.statements.map(({ statement }) => {
  const read = readAuthoritySuccession(statement);
  assert.ok(read !== null);
  return read;
});
const genesis = readGenesisBlock(vectors.genesis);
assert.ok(genesis !== null);

function pinOf(pin: Pin, known: readonly AuthoritySuccession[]): ChainPin {
  const { network_name: networkName, root_key, authority_key = '', genesis_digest } = pin;
  return {
    networkName,
    trusted: root_key === undefined ? { authorityKey: authority_key } : { rootKey: root_key },
    known,
    ...(genesis_digest !== undefined && { genesisDigest: genesis_digest }),
  };
}

suite('the vectors of', () => {
  test('the genesis block', () => {
    assert.equal(genesisDigest(genesis, portableSha256), vectors.genesis_digest);
    assert.equal(chain[0]?.previous_digest, vectors.genesis_digest);
  });

  for (const [index, vector] of vectors.statements.entries()) {
    test(`statement ${index + 1}`, () => {
      const statement = chain[index] as AuthoritySuccession;
      const { proof_of_possession: _, signatures: __, ...terms } = statement;
      assert.equal(canonicalJson(terms), vector.terms);
      assert.equal(possessionText(terms, portableSha256), vector.possession_text);
      assert.equal(signedText(statement), vector.signed_text);
      assert.equal(successionDigest(statement, portableSha256), vector.digest);
      const proven = proveSuccession(terms, signerOf(terms.to_key), portableSha256);
      const isStolen = terms.kind === 'compromise';
      const half = isStolen ? proven : signAsFromKey(proven, signerOf(terms.from_key));
      assert.deepEqual(signAsRoot(half, signerOf(terms.root_public_key)), statement);
    });
  }

  for (const [index, vector] of vectors.followed.entries()) {
    test(`chain ${index + 1}, which is followed`, () => {
      const statements = vector.successions.map((place) => chain[place]);
      const verdict = followChain(
        pinOf(vector.pin, []),
        { successions: statements },
        instantOf(vector.now),
        tools,
      );
      assert.ok(verdict.refusal === null);
      assert.deepEqual(verdict.keys, vector.keys);
      assert.equal(verdict.currentKey, vector.current_key);
      const { network_name, root_public_key } = genesis;
      const { keys, successions } = verdict;
      const document = { network_name, root_public_key, keys, successions };
      assert.ok(Value.Check(AuthorityKeys, document));
    });
  }

  for (const [index, vector] of vectors.refused.entries()) {
    test(`refused chain ${index + 1}: ${vector.reason}`, () => {
      const known = vector.known.map((place) => chain[place] as AuthoritySuccession);
      const pin = pinOf(vector.pin, known);
      const { refusal } = followChain(
        pin,
        { successions: vector.successions },
        instantOf(vector.now),
        tools,
      );
      assert.deepEqual([refusal?.reason, refusal?.sequence], [vector.reason, vector.sequence]);
    });
  }

  test('the files', () => {
    const request = readSuccessionRequest(vectors.files.request);
    const succession = readSignedSuccession(vectors.files.succession);
    assert.ok(request !== null && succession !== null && isUnaltered(request, verifyText));
    assert.deepEqual(signSuccession(request, signerOf(genesis.root_public_key)), succession);
    assert.equal(successionProblem(succession, { genesis, successions: [] }, 0, tools), null);
  });
});
