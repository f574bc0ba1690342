// Runners perform agent turns. A runner gets a finished prompt and returns the result; the worker decides about retries, timeouts and
// records.
import type { OwnCode } from './own.ts'
import type { AgentAction, Thinking } from '../core/model/action.ts'
import { normalizeEscapes } from '../core/model/delivery.ts'
import type { z } from 'zod'
import type { Log } from '../base/log.ts'
import type { Probe } from './channel.ts'
import type { ModelsConfig } from './config/agents.ts'
import type { Message, RunVerdict, Usage } from './job.ts'
import type { PassingParts } from './source.ts'
import type { JsonValue } from '../base/json.ts'

export type RunRequest = {
  readonly runId: string
  /** 1 on the first try of a run. */
  readonly attempt: number
  readonly agentId: string
  readonly sessionKey: string
  /** `<provider>/<model>`. Undefined if neither the action nor the agent names one. */
  readonly model: string | undefined
  readonly thinking: Thinking | undefined
  /** The system text of the configuration, followed by the AGENTS.md of the workspace. */
  readonly system: string | undefined
  /** The maximum number of tokens of the reply, reasoning included. Undefined: the limit of the provider. */
  readonly maxOutputTokens?: number | undefined
  /** Working directory of the agent, an absolute path that exists. Undefined if it has none. */
  readonly workspace: string | undefined
  /** Earlier messages of a persistent session, oldest first; empty for an isolated run. */
  readonly history: readonly Message[]
  /** The `RunResult.state` of the previous turn of the session. Undefined for a first turn, and for an isolated run. */
  readonly state: JsonValue | undefined
  /** The instructions of the operator, and the external text inside its boundary. */
  readonly prompt: string
  /** The external text alone, to show to people. It has no boundary, so it must never reach a model. */
  readonly message: string
  /** The action of a hook run, for a runner that also delivers the reply. Undefined for a heartbeat. */
  readonly action: AgentAction | undefined
  /** The verdicts of which the reply must give one. The prompt asks for the verdict on the last line. Undefined: no verdict is requested. */
  readonly verdicts?: readonly string[] | undefined
  /** The hops of the run. A runner that hands the turn to another gateway sends them as the header `hookloom-hops`. */
  readonly hops: number
  /** When `io.signal` will end the run, in milliseconds since the epoch. */
  readonly deadline: number
}

export type RunIO = {
  /**
   * Aborted when nobody waits for the turn any more. Its reason has the name `TimeoutError` at the deadline, and `EndedError` if the job was ended.
   * For another reason, a stop of the gateway or a lost lease, the turn is run again.
   */
  readonly signal: AbortSignal
  /** Logs one line for the operator, which must contain no payload and no secret. */
  readonly log: (message: string) => void
  /** Shows people the reply so far, as a whole. Call it as often as the model writes. */
  readonly onText?: (text: string) => void
}

/**
 * `detail` is one sentence for the operator; `quotes`: it quotes outside text, so no log shows it. An `error` that is not `retryable` ends the
 * job. `unavailable`: nothing was done, because the other side was not reached, limits the rate or is overloaded, and the run waits.
 * `forwarded`: another gateway performs the turn and delivers its reply, and `id` is that of its run. `usage` of a failure: the tokens that the
 * model used before it. `mayCost`: the provider may charge for it, although it is `unavailable`. `too-long`: prompt and history are too long for
 * the model. The worker tries again with a shorter history, if there is one.
 */
export type RunResult =
  | {
      readonly status: 'ok'
      readonly text: string
      readonly simulated?: boolean
      /** The model that answered, if it is known. */
      readonly model?: string
      readonly usage?: Usage
      /** The verdict, if `verdicts` are requested and the runner found it in another form than a last line. */
      readonly verdict?: RunVerdict
      /** A state that is stored with a persistent session and passed to its next turn, such as the session id of a command. */
      readonly state?: JsonValue
    }
  | { readonly status: 'forwarded'; readonly id: string; readonly detail: string }
  | ({ readonly detail: string; readonly quotes?: boolean; readonly usage?: Usage; readonly mayCost?: true } & (
      | { readonly status: 'error'; readonly retryable: boolean; readonly retryAfterMs?: number }
      | { readonly status: 'unavailable'; readonly retryAfterMs?: number }
      | { readonly status: 'timeout' | 'too-long' }
    ))

export interface Runner {
  readonly id: string
  /** Returns a failure of the model as a result. An exception counts as a retryable failure. */
  run(request: RunRequest, io: RunIO): Promise<RunResult>
  /** Checks whether a turn could run, without a call that costs money. */
  probe?(signal: AbortSignal): Promise<Probe>
  /** False: its turns get no workspace, so no folder is made, and AGENTS.md is not read. */
  readonly usesWorkspace?: false
  /** As in its definition. */
  readonly readsFiles?: true
  /**
   * Answers the requests to `<hooks.path>/runners/<name of the section>` on the hook port. The code checks the credential itself; one that follows in the
   * path, from a client that sends no header, becomes `authorization: Bearer …`, and no list or log has it. It sees only requests
   * that are not from a page of another site, with a body of at most 256 KiB. The host name of `request.url` is not that of the client.
   * The answer must come within half a minute, and its body is text. A body of the type `text/event-stream` may go on until the signal is aborted:
   * when the client has gone, when another configuration is live, when the gateway stops, and after an hour; ten seconds later the connection is cut.
   * The answer 401 counts as a failed token of the client, and is replaced by the usual refusal. A client with too many of them gets 429 for a
   * minute, without a call.
   */
  serve?(request: Request, io: { readonly signal: AbortSignal }): Promise<Response>
  /**
   * Work of its own, such as posting what the turns have stored. It starts when the configuration is live, and again with each one that follows. Of
   * several gateways on a store, one does it; while the duty moves, two may do it for some seconds.
   */
  readonly passes?: PassingParts
}

/** A durable value of a runner. `until`: it is gone after this moment, in milliseconds since the epoch. */
export type StoredValue = { readonly text: string; readonly until: number }

/** `from`: the value as it was read; undefined if there was none. `to`: undefined deletes it. */
export type RunnerStateWrite = {
  readonly key: string
  readonly from: StoredValue | undefined
  readonly to: StoredValue | undefined
}

/**
 * What a runner keeps in the store of the gateway. All gateways on the store share it, and it survives the end of the process. A key has 1 to 200
 * characters, and no control characters. A text has at most 1 MiB. Rejects while the store is not available.
 */
export type RunnerState = {
  read(key: string): Promise<StoredValue | undefined>
  /** The values whose keys begin with a text, in the order of the keys by code point. Reads all of them. */
  list(prefix: string): Promise<(StoredValue & { readonly key: string })[]>
  /**
   * Writes all changes in one transaction, or none: resolves to false if one of the values is not `from` any more. Then read again, and decide again.
   * Resolves to true when the changes are on disk.
   */
  write(changes: readonly RunnerStateWrite[]): Promise<boolean>
}

const servedPrefix = 'runners/'

/**
 * The section whose runner answers the requests to a path after `hooks.path`, as the name of a hook is written; undefined if there is none. `hook`: the
 * path of the section. `rest`: what follows, with its slash.
 */
export function findServedSection(
  path: string,
  sections: object,
): { readonly section: string; readonly hook: string; readonly rest: string } | undefined {
  if (!path.startsWith(servedPrefix)) return undefined
  for (const section of Object.keys(sections)) {
    const hook = servedPrefix + normalizeEscapes(encodeURIComponent(section))
    if (path === hook || path.startsWith(`${hook}/`)) return { section, hook, rest: path.slice(hook.length) }
  }
  return undefined
}

/** What the code of a runner makes. */
export type RunnerParts = Omit<Runner, 'id' | 'readsFiles'>

/** What a client of a runner has changed. `by`: the name of the client in the section. `target`: what the act is about, such as an id. */
export type RunnerAct = {
  readonly by: string
  readonly act: string
  readonly target: string
  readonly details?: Readonly<Record<string, string>>
}

/** What a runner gets from the gateway. */
export type RunnerHost = {
  /** The name in `runners` or, of a runner without a section, the name that agents use. */
  readonly id: string
  /** `models` of the configuration. */
  readonly models: ModelsConfig
  /** The ids of the agents of the configuration whose turns it performs. */
  readonly agents: readonly string[]
  /** The environment variables that a program may get. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Sends a request whose body is text. It follows no redirect, and has no time limit: a model may think for minutes. */
  readonly fetch: (input: Request | URL | string, init?: RequestInit) => Promise<Response>
  /**
   * The same for a URL that an outsider chose: https only, and only to public addresses, which are checked when the connection is made. Any other one
   * is refused as if nobody answered.
   */
  readonly fetchPublic: RunnerHost['fetch']
  readonly state: RunnerState
  /** Fields and messages have no payload. Secrets of the section are masked in them. */
  readonly log: Log
  /** Writes what a client of the runner has changed into the audit log, without a payload and without a secret. Never throws. */
  readonly audit: (act: RunnerAct) => void
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** A kind of runner: what performs the turns of an agent. It runs in the main thread of the gateway. */
export type RunnerDefinition<Options = unknown> = {
  /** The value of `kind` in a section of `runners`. */
  readonly name: string
  /** One sentence for editors and pages. */
  readonly about: string
  /** The page that documents the other side. */
  readonly docs?: string
  /** The schema of a section without `kind`: a strict object of zod. Undefined: it has no section. */
  readonly options?: z.ZodType<Options>
  /** Of a built-in kind: the runners that need no section, by the name that agents use, with their options. A plugin has none. */
  readonly ready?: Readonly<Record<string, object>>
  /** True: the agent can open files in the workspace, so the files of an item are written there. */
  readonly readsFiles?: true
  /** Makes the runner of a section. Throws an error whose message names the key if the options cannot work. */
  create(options: Options, host: RunnerHost): RunnerParts
}

/** A loaded runner of a plugin. `broken`: its turns wait until the code is corrected. */
export type OwnRunner = OwnCode<RunnerDefinition> & { readonly name: string }

export type RunFailure = Exclude<RunResult, { status: 'ok' | 'forwarded' }>

/** A failure that a retry cannot fix. */
export function permanentFailure(detail: string): RunFailure {
  return { status: 'error', retryable: false, detail }
}

/** A failure that a retry may fix. `retryAfterMs`: when the provider asks to retry. */
export function retryableFailure(detail: string, wait: { readonly retryAfterMs?: number } = {}): RunFailure {
  return { status: 'error', retryable: true, detail, ...wait }
}

/** Nothing was done, because the provider is not available now. `retryAfterMs`: when it asks to retry. */
export function unavailableFailure(detail: string, wait: { readonly retryAfterMs?: number } = {}): RunFailure {
  return { status: 'unavailable', detail, ...wait }
}

/** A turn that runs in this gateway. Its times are by the clock of the gateway. `until`: when its time limit ends it. */
export type RunningTurn = { readonly jobId: string; readonly since: number; readonly until: number }

/** The slots for runs of this gateway. `most`: `agents.defaults.maxConcurrent`. `fullSince`: undefined if a slot is free. `turns`: the oldest first. */
export type Slots = {
  readonly used: number
  readonly most: number
  readonly fullSince: number | undefined
  readonly turns: readonly RunningTurn[]
}
