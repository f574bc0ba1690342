// The known command-line agents, as data. Both may only read, because outsiders wrote their input.
import type { Thinking } from '../../../../core/model/action.ts'
import type { CommandOptions } from './options.ts'

/** A place in the output of a command: a path, in the last event that has this path and matches all of `where`. */
export type Field = { readonly path: string; readonly where?: Readonly<Record<string, string | boolean>> }

/** Paths to numbers whose sum is a count. */
type Sums = readonly string[]

export type UsageFields = {
  readonly inputTokens: Sums
  readonly outputTokens: Sums
  readonly cachedInputTokens: Sums
  readonly reasoningTokens?: Sums
  readonly costUsd?: Sums
}

export type Profile = {
  readonly command: string
  readonly args: readonly string[]
  readonly resumeArgs: readonly string[]
  readonly input: 'stdin' | 'arg'
  readonly output: 'text' | 'json' | 'jsonl'
  readonly text: Field
  readonly session: Field
  /** The possible places of the reason for a failure; the first one found counts. */
  readonly failure: readonly Field[]
  readonly usage: UsageFields
  /** Whether the counts cover the whole session, even after a resume. */
  readonly countsSession: boolean
  /** Whether an `@path` in the prompt shows that file to the model, from anywhere on the disk and without asking. */
  readonly readsMentions: boolean
  /** The command's words for thinking levels. For a level without a word, the configuration of the command decides. */
  readonly thinking: Readonly<Partial<Record<Thinking, string>>>
}

/**
 * Claude Code: it may only read files below its working directory, without a shell, edits or MCP servers. Settings of the workspace are not
 * read, because hooks in them run commands, and outsiders may have written the files of a workspace. Checked with 2.1.197;
 * https://docs.anthropic.com/en/docs/claude-code/cli-reference
 */
const claudeArgs: readonly string[] = [
  ['--print', '--output-format', 'json'],
  ['--permission-mode', 'plan', '--tools', 'Read,Glob,Grep', '--strict-mcp-config'],
  ['--setting-sources', 'user', '--disable-slash-commands'],
  ['--model', '{model}', '--effort', '{thinking}', '--append-system-prompt', '{system}'],
].flat()

/**
 * Codex: it runs commands in a sandbox that can neither write nor reach the network. It does not read rules that let commands leave the
 * sandbox, and web searches are off, because they could leak data. Checked with 0.169.0; https://developers.openai.com/codex/noninteractive
 */
const codexArgs: readonly string[] = [
  ['exec', '--json', '--color', 'never', '--skip-git-repo-check'],
  ['--sandbox', 'read-only', '--ignore-rules', '-c', 'web_search=disabled'],
  ['--model', '{model}', '-c', 'model_reasoning_effort={thinking}'],
].flat()

export const profiles: Readonly<Record<NonNullable<CommandOptions['profile']>, Profile>> = {
  claude: {
    command: 'claude',
    args: [...claudeArgs, '--session-id', '{sessionId}'],
    resumeArgs: [...claudeArgs, '--resume', '{sessionId}'],
    input: 'stdin',
    output: 'json',
    text: { path: 'result', where: { type: 'result' } },
    session: { path: 'session_id', where: { type: 'result' } },
    failure: [
      { path: 'errors', where: { is_error: true } },
      { path: 'result', where: { is_error: true } },
      { path: 'subtype', where: { is_error: true } },
    ],
    usage: {
      inputTokens: ['usage.input_tokens', 'usage.cache_creation_input_tokens', 'usage.cache_read_input_tokens'],
      outputTokens: ['usage.output_tokens'],
      cachedInputTokens: ['usage.cache_read_input_tokens'],
      costUsd: ['total_cost_usd'],
    },
    countsSession: false,
    readsMentions: true,
    thinking: { minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'xhigh' },
  },
  codex: {
    command: 'codex',
    // "-" means that the prompt comes from stdin
    args: [...codexArgs, '-'],
    resumeArgs: [...codexArgs, 'resume', '{sessionId}', '-'],
    input: 'stdin',
    output: 'jsonl',
    text: { path: 'item.text', where: { type: 'item.completed', 'item.type': 'agent_message' } },
    session: { path: 'thread_id', where: { type: 'thread.started' } },
    failure: [{ path: 'error.message', where: { type: 'turn.failed' } }],
    usage: {
      inputTokens: ['usage.input_tokens'],
      outputTokens: ['usage.output_tokens'],
      cachedInputTokens: ['usage.cached_input_tokens'],
      reasoningTokens: ['usage.reasoning_output_tokens'],
    },
    countsSession: true,
    readsMentions: false,
    thinking: { off: 'none', minimal: 'minimal', low: 'low', medium: 'medium', high: 'high', xhigh: 'xhigh' },
  },
}
