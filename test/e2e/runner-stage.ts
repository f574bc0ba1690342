// A run of the runner `ai` against a fake provider.
import { aiRunner } from '../../src/plugins/runners/ai.ts'
import { createRunner } from '../unit/plugins/runners/stage.ts'
import { ModelsConfig, type ProviderConfig } from '../../src/model/config/agents.ts'
import type { RunRequest, RunResult } from '../../src/model/runner.ts'
import { type Api, apiKey, type FakeProvider } from './fakes/provider.ts'
import { toRunRequest } from './runner-request.ts'

export type Provider = Partial<
  Pick<ProviderConfig, 'baseUrl' | 'apiKey' | 'headers' | 'stream' | 'thinking' | 'firstByteSeconds'>
>

export function toModels(api: Api, fake: Pick<FakeProvider, 'baseUrl'>, provider: Provider = {}): ModelsConfig {
  return ModelsConfig.parse({
    aliases: { quick: `mine/${api.model}` },
    providers: { mine: { kind: api.kind, baseUrl: fake.baseUrl, apiKey, ...provider } },
  })
}

export type RunOutcome = { readonly result: RunResult; readonly lines: readonly string[] }

export async function run({
  api,
  fake,
  provider,
  request = {},
  signal = new AbortController().signal,
}: {
  api: Api
  fake: Pick<FakeProvider, 'baseUrl'>
  provider?: Provider
  request?: Partial<RunRequest>
  signal?: AbortSignal
}): Promise<RunOutcome> {
  const lines: string[] = []
  const runner = createRunner(aiRunner, {}, { models: toModels(api, fake, provider), clock: () => 1_700_000_000_000 })
  const result = await runner.run(toRunRequest({ model: `mine/${api.model}`, ...request }), {
    signal,
    log: (line) => lines.push(line),
  })
  return { result, lines }
}
