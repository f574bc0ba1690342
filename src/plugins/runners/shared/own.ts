// Runners in the code of integrators. An exception or an invalid result counts as a failure that a retry may fix.
import { z } from 'zod'
import { cut, toPrintableLine } from '../../../base/text.ts'
import { guardProbe } from '../../../model/channel.ts'
import { createSecretMask, listConfigSecrets } from '../../../model/config/secrets.ts'
import {
  type OwnRunner,
  retryableFailure,
  type Runner,
  type RunnerHost,
  type RunnerParts,
  unavailableFailure,
} from '../../../model/runner.ts'
import { SourceFailure } from '../../../model/source.ts'
import { limitPasses, maskLog } from '../../sources/shared/own.ts'

const brokenRetryMs = 60_000
const maxDetailChars = 500

const detail = z.string().transform((text) => cut(toPrintableLine(text), maxDetailChars))
const count = z.int().nonnegative()
const usage = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count.exactOptional(),
  cacheWriteTokens: count.exactOptional(),
  reasoningTokens: count.exactOptional(),
  costUsd: z.number().nonnegative().exactOptional(),
})
const failure = { detail, usage: usage.exactOptional(), mayCost: z.literal(true).exactOptional() }
const wait = { retryAfterMs: z.number().nonnegative().exactOptional() }
/** The result of a turn. */
export const RunnerResult = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('ok'),
    text: z.string(),
    model: z.string().exactOptional(),
    usage: usage.exactOptional(),
    state: z.json().exactOptional(),
  }),
  z.object({ status: z.literal('forwarded'), id: z.string().min(1), detail }),
  z.object({ status: z.literal('error'), retryable: z.boolean(), ...failure, ...wait }),
  z.object({ status: z.literal('unavailable'), ...failure, ...wait }),
  z.object({ status: z.enum(['timeout', 'too-long']), ...failure }),
])

/** Makes the runner of a loaded definition. While the code is broken, its turns wait. */
export function createOwnRunner(own: OwnRunner, host: RunnerHost): Runner {
  const { id } = host
  if (own.kind === 'broken') return { ...createBrokenRunner(own.problem.detail), id }
  const { label, definition, options, describeThrown } = own
  const files = definition.readsFiles === true ? { readsFiles: true as const } : {}
  const describe = (what: string) => `The runner ${label} ${what}`
  const describeException = (thrown: unknown) => describe(`threw ${describeThrown(thrown)}.`)
  const hide = createSecretMask(listConfigSecrets({ options }, []), '***')
  let parts: RunnerParts
  try {
    parts = definition.create(options, { ...host, log: maskLog(host.log, hide), audit: maskAudit(host.audit, hide) })
  } catch (thrown) {
    return { ...createBrokenRunner(describeException(thrown)), ...files, id }
  }
  return {
    id,
    async run(request, io) {
      try {
        const result = RunnerResult.safeParse(await parts.run(request, io))
        if (result.success) {
          const { data } = result
          if (data.status === 'ok') return data
          const shown = { ...data, detail: hide(data.detail) }
          return shown.status === 'forwarded' ? shown : { ...shown, quotes: true }
        }
        return retryableFailure(
          describe('returned no valid result. Return { status: "ok", text }, or a failure with a detail.'),
        )
      } catch (thrown) {
        return retryableFailure(describeException(thrown))
      }
    },
    ...files,
    ...(parts.usesWorkspace === false && { usesWorkspace: false }),
    ...guardProbe(parts, { describe, describeException }),
    ...limitOwnWork(parts, { describe, describeException, hide }),
  }
}

function maskAudit(audit: RunnerHost['audit'], hide: (text: string) => string): RunnerHost['audit'] {
  return ({ by, act, target, details = {} }) => {
    const shown = Object.entries(details).map(([name, text]) => [hide(name), hide(text)])
    audit({ by: hide(by), act: hide(act), target: hide(target), details: Object.fromEntries(shown) })
  }
}

type OwnTexts = {
  readonly describe: (what: string) => string
  readonly describeException: (thrown: unknown) => string
  readonly hide: (text: string) => string
}

/** The requests and the passes of a runner. An exception names the plugin, and no secret. */
function limitOwnWork(
  { serve, passes }: RunnerParts,
  { describe, describeException, hide }: OwnTexts,
): Pick<RunnerParts, 'serve' | 'passes'> {
  return {
    ...(typeof serve === 'function' && {
      async serve(request, io) {
        let answer: unknown
        try {
          answer = await serve(request, io)
        } catch (cause) {
          throw new Error(describeException(cause), { cause })
        }
        if (answer instanceof Response) return answer
        throw new Error(describe('must return a Response from serve.'))
      },
    }),
    ...(passes !== undefined && {
      passes: limitPasses(passes, {
        describe,
        describeException,
        toFailure: (cause) => new SourceFailure(describeException(cause), { cause }),
        hide,
      }),
    }),
  }
}

function createBrokenRunner(why: string): RunnerParts {
  return {
    run: async () => unavailableFailure(`${why} The turn waits until it is fixed.`, { retryAfterMs: brokenRetryMs }),
    probe: async () => ({ ok: false, detail: why }),
  }
}
