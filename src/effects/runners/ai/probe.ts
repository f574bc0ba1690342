// Whether each provider is there and takes its key: one GET of its list of models, which costs nothing.
import type { ModelsConfig } from '../../../model/agents-config.ts'
import type { Probe } from '../../../model/channel.ts'
import { toErrorCode } from '../../exceptions.ts'
import type { Fetch } from './patient-fetch.ts'
import { type Provider, toKeyHeaders, toProvider } from './providers.ts'

type ProbeParts = { readonly models: ModelsConfig; readonly fetch: Fetch; readonly signal: AbortSignal }

export async function probeProviders({ models, fetch, signal }: ProbeParts): Promise<Probe> {
  const names = Object.keys(models.providers)
  if (names.length === 0)
    return {
      ok: false,
      detail: 'models.providers is empty: no model can be asked. Add the provider of agents.defaults.model.',
    }
  const probes = await Promise.all(
    names.map(async (name): Promise<Probe> => {
      const found = toProvider(name, models)
      return found.ok ? probeOne(found.provider, fetch, signal) : { ok: false, detail: found.reason }
    }),
  )
  return { ok: probes.every(({ ok }) => ok), detail: probes.map(({ detail }) => detail).join(' ') }
}

async function probeOne({ name, config, baseUrl }: Provider, fetch: Fetch, signal: AbortSignal): Promise<Probe> {
  try {
    const answer = await fetch(`${baseUrl}/models`, { headers: toKeyHeaders(config), signal })
    await answer.body?.cancel()
    if (answer.ok) return { ok: true, detail: `${name} answers.` }
    // Google's 400 can mean nothing else here
    const status = config.kind === 'google' && answer.status === 400 ? 401 : answer.status
    return { ok: false, detail: toRefusal(name, status) }
  } catch (thrown) {
    const why = signal.aborted ? 'no answer in time' : (toErrorCode(thrown) ?? 'no HTTP')
    const { host } = new URL(baseUrl)
    return {
      ok: false,
      detail: `${name} cannot be reached at ${host} (${why}): is it there, and is models.providers.${name}.baseUrl right?`,
    }
  }
}

function toRefusal(name: string, status: number): string {
  if (status === 401 || status === 403)
    return `${name} refused the key (${status}): see models.providers.${name}.apiKey.`
  if (status === 404) {
    return `${name} has no list of models (404): does models.providers.${name}.baseUrl lack its "/v1"?`
  }
  return `${name} answered its list of models with ${status}: look at models.providers.${name}.baseUrl, and at its log.`
}
