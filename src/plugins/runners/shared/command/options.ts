// The keys of a runner of the kind `command`.
import { z } from 'zod'
import { filePath, nonBlank } from '../../../../core/model/values.ts'

export const CommandOptions = z.strictObject({
  profile: z
    .enum(['claude', 'codex'])
    .optional()
    .describe('Built-in settings for a known program. Keys that you set here win.'),
  command: filePath
    .refine(
      (command) => /^([^/\\]+|\/.+|[a-z]:\\.+)$/i.test(command),
      'must be the name of a program or an absolute path',
    )
    .optional()
    .describe('The program: a name in PATH, or an absolute path. It never runs through a shell.'),
  args: z
    .array(z.string())
    .optional()
    .describe(
      'Arguments of a first turn. {prompt} {sessionId} {provider} {model} {thinking} {system} are replaced. An argument ' +
        'without a value is left out, together with the flag before it, unless it is a flag itself (--model={model}).',
    ),
  resumeArgs: z
    .array(z.string())
    .optional()
    .describe('Arguments of a later turn of a persistent session. Without them, every turn is a first turn.'),
  input: z
    .enum(['stdin', 'arg'])
    .optional()
    .describe(
      'How the program gets the prompt. arg: as the argument {prompt}; stdin: on standard input. Default: arg if `args` contains {prompt}, else stdin.',
    ),
  output: z
    .enum(['text', 'json', 'jsonl'])
    .optional()
    .describe('What the program prints: plain text, one JSON document, or JSON lines.'),
  textField: nonBlank.optional().describe('Path of the reply in the JSON output.'),
  sessionField: nonBlank
    .optional()
    .describe('Path of the session id in the JSON output. Set it if the program makes the id.'),
  env: z
    .array(nonBlank)
    .optional()
    .describe('Names of environment variables that the program can read, in addition to PATH, HOME, LANG and TMPDIR.'),
  killAfterMs: z
    .int()
    .positive()
    .max(60_000)
    .default(5_000)
    .describe('Milliseconds between SIGTERM and SIGKILL when the program must end.'),
})
export type CommandOptions = z.infer<typeof CommandOptions>
