// Runs an agent that is a program, without a shell: once for each turn, and again if the program no longer knows the session.
import {
  defineRunner,
  type Probe,
  type RunIO,
  type RunnerHost,
  type RunnerParts,
  type RunRequest,
} from '../../define.ts'
import { abortAfter, cut, type RunResult, toPrintableLine } from './shared/kit.ts'
import { CommandOptions } from './shared/command/options.ts'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { z } from 'zod'
import { splitModelName } from './shared/model-name.ts'
import { runInWorkspace } from './shared/workspace.ts'
import {
  type ArgumentValues,
  type CommandSpec,
  fillArguments,
  hasPlaceholder,
  buildCommandSpec,
} from './shared/command/spec.ts'
import { type ChildEnd, runChild } from './shared/command/child.ts'
import {
  isSessionGone,
  toRunFailure,
  toOutputLimitFailure,
  toFolderFailure,
  toTextFailure,
  toJsonFailure,
  toStartFailure,
  toStopFailure,
} from './shared/command/failure.ts'
import { type PrintedResult, PrintedUsage, toTurnUsage } from './shared/command/printed.ts'

/** The maximum number of bytes of a reply, or of the document with the reply. */
const maxReplyBytes = 1_048_576
/** The maximum number of bytes of events, which include every file that was read. */
const maxEventBytes = 16 * maxReplyBytes
const probeMs = 5_000

/** The stored state of a session. `usage`: the token counts of the whole session, for a command that prints totals. */
const SessionState = z.object({ sessionId: z.string(), usage: PrintedUsage.exactOptional() })
type SessionState = z.infer<typeof SessionState>

/** The result of one run of the program, and its session. */
type Execution = {
  readonly end: ChildEnd
  /** The output; undefined if the program did not end by itself, or if its output is not the expected JSON. */
  readonly printed: PrintedResult | undefined
  /** The session that the run continued; undefined for a new session. */
  readonly state: SessionState | undefined
  /** The session id that the runner passed to the program; undefined if the program accepts none. */
  readonly givenId: string | undefined
}

type Turn = { readonly spec: CommandSpec; readonly request: RunRequest; readonly io: RunIO; readonly folder: string }

export const commandRunner = defineRunner({
  name: 'command',
  about: 'A program that runs one turn.',
  options: CommandOptions,
  readsFiles: true,
  ready: { claude: { profile: 'claude' }, codex: { profile: 'codex' } },
  create: createCommandRunner,
})

/**
 * Throws `config-invalid` if the configuration cannot work. Without a workspace, a turn runs in an empty folder and its session is not
 * continued, because commands keep their sessions by folder.
 */
function createCommandRunner(config: CommandOptions, { id, env }: RunnerHost): RunnerParts {
  const spec = buildCommandSpec(id, config, env)
  return {
    run: (request, io) => runInWorkspace(request.workspace, (folder) => run({ spec, request, io, folder })),
    probe: (signal) => runInWorkspace(undefined, (folder) => probe(spec, signal, folder)),
  }
}

async function run(turn: Turn): Promise<RunResult> {
  const { spec, request, io } = turn
  const state = keepsSessions(turn) ? SessionState.safeParse(request.state).data : undefined
  const execution = await execute(turn, state)
  if (state === undefined || !hasLostSession(execution)) return buildRunResult(execution, turn)
  io.log(`runners.${spec.id}: the command no longer knows this session; a new one starts`)
  return buildRunResult(await execute(turn, undefined), turn)
}

function keepsSessions({ spec, request }: Turn): boolean {
  return spec.resumeArgs !== undefined && request.workspace !== undefined
}

async function execute({ spec, request, io, folder }: Turn, state: SessionState | undefined): Promise<Execution> {
  const args = (state === undefined ? undefined : spec.resumeArgs) ?? spec.args
  const sessionId = state?.sessionId ?? randomUUID()
  const prompt = buildCommandPrompt({ ...spec, args }, request, state === undefined)
  const end = await runChild({
    command: spec.command,
    args: fillArguments(args, toArgumentValues(spec, request, { prompt, sessionId })),
    cwd: folder,
    env: spec.env,
    input: spec.input === 'stdin' ? prompt : undefined,
    maxOutputBytes: chooseMaxBytes(spec),
    killAfterMs: spec.killAfterMs,
    signal: io.signal,
    log: io.log,
  })
  return {
    end,
    printed: end.kind === 'exited' ? spec.read(end.output) : undefined,
    state,
    givenId: hasPlaceholder(args, 'sessionId') ? sessionId : undefined,
  }
}

function hasLostSession({ end, printed }: Execution): boolean {
  if (end.kind !== 'exited' || (end.code === 0 && printed?.failure === undefined)) return false
  return isSessionGone(`${printed?.failure ?? ''}\n${end.complaint}`)
}

function toArgumentValues(
  spec: CommandSpec,
  { model: name, thinking, system }: RunRequest,
  { prompt, sessionId }: { prompt: string; sessionId: string },
): ArgumentValues {
  const { provider, model } = splitModelName(name)
  return {
    prompt,
    sessionId,
    provider,
    model,
    thinking: thinking === undefined ? undefined : spec.toThinking(thinking),
    system,
  }
}

/** The system text goes before the first prompt of a session if the arguments have no placeholder for it. */
function buildCommandPrompt(
  { args, readsMentions }: Pick<CommandSpec, 'args' | 'readsMentions'>,
  { prompt, system }: RunRequest,
  isFirst: boolean,
): string {
  const text = system === undefined || !isFirst || hasPlaceholder(args, 'system') ? prompt : `${system}\n\n${prompt}`
  // "@/home/me/.ssh/id_rsa" in an issue would reveal that file; "@ " names no file; mail addresses stay unchanged
  return readsMentions ? text.replace(/(?<![\p{L}\p{N}])@(?=\S)/gu, '@ ') : text
}

function chooseMaxBytes({ output }: CommandSpec): number {
  return output === 'jsonl' ? maxEventBytes : maxReplyBytes
}

function buildRunResult(execution: Execution, turn: Turn): RunResult {
  const { end, printed } = execution
  const { spec, io, folder } = turn
  if (end.kind === 'not-started')
    return existsSync(folder) ? toStartFailure(spec, end.code) : toFolderFailure(spec, folder)
  if (end.kind === 'stopped') return toStopFailure(spec, io.signal.reason)
  if (end.kind === 'flooded') return toOutputLimitFailure(spec, chooseMaxBytes(spec))
  if (end.code !== 0 || printed?.failure !== undefined) return toRunFailure(spec, end, printed?.failure)
  if (printed === undefined) return toJsonFailure(spec, spec.output)
  if (printed.text === undefined) return toTextFailure(spec, spec.textPath)
  if (Buffer.byteLength(printed.text) > maxReplyBytes) return toOutputLimitFailure(spec, maxReplyBytes)
  return buildReply(execution, turn, { ...printed, text: printed.text })
}

function buildReply(
  { state, givenId }: Execution,
  turn: Turn,
  { text, usage, sessionId = state?.sessionId ?? givenId }: PrintedResult & { readonly text: string },
): RunResult {
  const { countsSession } = turn.spec
  const turnUsage = usage === undefined || !countsSession ? usage : toTurnUsage(usage, state?.usage)
  const counts = usage === undefined || !countsSession ? {} : { usage }
  return {
    status: 'ok',
    text,
    ...(turnUsage === undefined ? {} : { usage: turnUsage }),
    ...(sessionId === undefined || !keepsSessions(turn) ? {} : { state: { sessionId, ...counts } }),
  }
}

async function probe(spec: CommandSpec, signal: AbortSignal, folder: string): Promise<Probe> {
  const end = await runChild({
    command: spec.command,
    args: ['--version'],
    cwd: folder,
    env: spec.env,
    input: undefined,
    maxOutputBytes: maxReplyBytes,
    killAfterMs: spec.killAfterMs,
    signal: abortAfter(probeMs, signal),
    log: () => {},
  })
  if (end.kind === 'not-started') return { ok: false, detail: toStartFailure(spec, end.code).detail }
  const program = `${JSON.stringify(spec.command)} --version`
  if (end.kind !== 'exited') return { ok: false, detail: `${program} did not end in ${probeMs / 1_000} s.` }
  if (end.code !== 0) return { ok: false, detail: toRunFailure(spec, end, undefined).detail }
  const version = cut(toPrintableLine(end.output.split('\n', 1)[0] ?? ''), 100)
  return { ok: true, detail: version === '' ? `${program} answers.` : version }
}
