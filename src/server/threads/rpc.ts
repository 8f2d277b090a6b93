/**
 * Calls between two threads, as messages. Every call is executed and answered with the procedure's result or its error.
 */
import { problemText } from '../../base/log/problem.ts';

/** Named functions that the other thread may call. Arguments and results are cloneable. */
export type Procedures = Readonly<Record<string, (argument: never) => unknown>>;

export interface RpcCall {
  readonly type: 'call';
  readonly id: number;
  readonly name: string;
  readonly argument: unknown;
}

export type RpcAnswer =
  | { readonly type: 'returned'; readonly id: number; readonly result: unknown }
  | { readonly type: 'threw'; readonly id: number; readonly problem: string };

export interface RpcCaller<Served extends Procedures> {
  /** Resolves with the result of the procedure; rejects with its error. */
  call<Name extends keyof Served & string>(
    name: Name,
    ...argument: Parameters<Served[Name]>
  ): Promise<Awaited<ReturnType<Served[Name]>>>;
  take(answer: RpcAnswer): void;
}

export function createRpcCaller<Served extends Procedures>(
  post: (call: RpcCall) => void,
): RpcCaller<Served> {
  const waiting = new Map<number, (answer: RpcAnswer) => void>();
  let lastId = 0;

  return {
    call<Name extends keyof Served & string>(name: Name, ...[argument]: Parameters<Served[Name]>) {
      lastId += 1;
      const id = lastId;
      return new Promise<Awaited<ReturnType<Served[Name]>>>((resolve, reject) => {
        waiting.set(id, (answer) => {
          if (answer.type === 'threw') reject(new Error(answer.problem));
          else resolve(answer.result as Awaited<ReturnType<Served[Name]>>);
        });
        post({ type: 'call', id, name, argument });
      });
    },
    take(answer) {
      waiting.get(answer.id)?.(answer);
      waiting.delete(answer.id);
    },
  };
}

/** Executes a call from the other thread. */
export async function answerCall(
  procedures: Procedures,
  { id, name, argument }: RpcCall,
  post: (answer: RpcAnswer) => void,
): Promise<void> {
  try {
    const procedure = Object.hasOwn(procedures, name) ? procedures[name] : undefined;
    if (procedure === undefined) throw new Error(`There is no procedure ${name}`);
    post({ type: 'returned', id, result: await procedure(argument as never) });
  } catch (cause) {
    post({ type: 'threw', id, problem: problemText(cause) });
  }
}
