/** A real authority on a real store, driven by signed requests that can be sent again. */
import assert from 'node:assert/strict';
import type { OpenAuthority } from '../../src/authority/open.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { parseJson } from '../../src/base/json/parse.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import type {
  Answer,
  Call,
  CallInput,
  CallOf,
  OperatorCallName,
} from '../../src/protocol/contract/calls.ts';
import { createDocumentPublisher } from '../../src/protocol/contract/documents.ts';
import type { Store } from '../../src/store/store.ts';
import { open } from '../simulation/authority-calls.ts';
import { KeyFolder } from '../simulation/key-folder.ts';
import {
  AUTHORITY,
  NETWORK,
  OPERATORS,
  type Operator,
  ROOT,
  signAsNode,
  signAsOperator,
} from '../simulation/requests.ts';
import type { SimulatedRuntime } from '../simulation/runtime.ts';

export const IDENTITY = {
  network_name: NETWORK,
  root_public_key: ROOT.publicKey,
  authority_public_key: AUTHORITY.publicKey,
};

/** A request that was accepted, in a form that can be sent again. */
export interface Accepted {
  readonly label: string;
  send(authority: Lived): Promise<Answer>;
}

export class Lived {
  readonly #authority: OpenAuthority;
  readonly #runtime: SimulatedRuntime;
  readonly #documents = new Map<string, string>();
  static #stamps = 0;

  private constructor(
    authority: OpenAuthority,
    runtime: SimulatedRuntime,
    documents: Map<string, string>,
  ) {
    this.#authority = authority;
    this.#runtime = runtime;
    this.#documents = documents;
  }

  static async open(store: Store, runtime: SimulatedRuntime): Promise<Lived> {
    const documents = new Map<string, string>();
    const publisher = createDocumentPublisher();
    publisher.follow(({ name, document }) =>
      documents.set(name, Buffer.from(document.bytes).toString()),
    );
    const folder = new KeyFolder();
    const authority = await open({
      folder,
      signer: folder.signer(),
      store,
      runtime,
      publisher,
      fatal(_where, cause) {
        throw cause;
      },
    });
    return new Lived(authority, runtime, documents);
  }

  get call(): Call {
    return this.#authority.call;
  }

  document(name: string): JsonObject {
    const text = this.#documents.get(name);
    assert.ok(text !== undefined, `${name} is published`);
    return parseJson(text) as JsonObject;
  }

  /** Sends a request; if it is accepted, adds it to `accepted`. */
  async ask(request: Accepted, accepted: Accepted[]): Promise<Answer> {
    this.#runtime.advance(20);
    const answer = await request.send(this);
    if (answer.ok) accepted.push(request);
    return answer;
  }

  stamp() {
    Lived.#stamps += 1;
    const { publicKey: audience } = AUTHORITY;
    const authorityKeys = { audiences: [audience] };
    const nonce = `nonce-${Lived.#stamps}`;
    return { now: this.#runtime.now(), nonce, audience, authorityKeys };
  }

  operator<Name extends OperatorCallName>(
    name: Name,
    given: CallInput<Name>,
    by: Operator = CHIEF,
  ): Accepted {
    const signed = signAsOperator(by, `/${name}`, {}, this.stamp(), 'none');
    const now = this.#runtime.now;
    return {
      label: `${name} by ${by.keyId}`,
      async send(authority) {
        const input = { ok: true, value: given };
        const call = { operator: signed.judge(now()), input } as unknown as CallOf<Name>;
        return authority.call(name, call);
      },
    };
  }

  join(key: Signer, token: string): Accepted {
    const signed = signAsNode(key, '/join', { token }, this.stamp(), 'none');
    const now = this.#runtime.now;
    return {
      label: `join by ${token}`,
      send: async (authority) =>
        authority.call('join', {
          node: signed.judge(now()),
          invite_token: token,
          validity_hours: 24,
          hostname: null,
        }),
    };
  }

  renew(key: Signer, certId: string): Accepted {
    const signed = signAsNode(key, '/renew', { certId }, this.stamp(), 'none');
    const now = this.#runtime.now;
    return {
      label: `renewal of ${certId}`,
      send: async (authority) =>
        authority.call('renew', {
          node: signed.judge(now()),
          cert_id: certId,
          validity_hours: 24,
          roles: null,
        }),
    };
  }

  heartbeat(key: Signer, certId: string): Accepted {
    const signed = signAsNode(key, '/heartbeat', { certId }, this.stamp(), 'none');
    const now = this.#runtime.now;
    return {
      label: `heartbeat of ${certId}`,
      send: async (authority) =>
        authority.call('heartbeat', {
          node: signed.judge(now()),
          cert_id: certId,
          status: 'healthy',
          bulletin: false,
          authority_keys_digest: null,
        }),
    };
  }

  flush(): Promise<void> {
    return this.#authority.flush();
  }

  close(): Promise<void> {
    return this.#authority.close();
  }
}

const CHIEF = OPERATORS[0] as Operator;

export function valueIn(answer: Answer): JsonObject {
  assert.ok(answer.ok, JSON.stringify(answer));
  return JSON.parse(answer.json) as JsonObject;
}
