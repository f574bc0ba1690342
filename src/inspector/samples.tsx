// A menu of the samples with which a hook can be tried.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ModuleText, SampleFields } from '../model/api/bench.ts'
import { call } from './api.ts'
import { formatClock, markUnseen } from './format.ts'

type Samples = { readonly samples: readonly SampleFields[]; readonly code: readonly ModuleText[] }

/** Reads the samples of a hook, and the code that can be tried with changes, again after each save. */
export function useSamples(hook: string, saved: string): Partial<Samples> {
  const [found, setFound] = useState<Partial<Samples>>({})
  useEffect(() => {
    const ended = new AbortController()
    void call('GET /api/samples', { query: { hook }, signal: ended.signal })
      .then(setFound)
      .catch(() => !ended.signal.aborted && setFound({ samples: [] }))
    return () => ended.abort()
  }, [hook, saved])
  return found
}

/** A kept request by its time and by what became of it. */
function describeSample(sample: SampleFields): string {
  if (sample.kind !== 'kept') return sample.name
  return `${formatClock(Date.parse(sample.receivedAt))} · ${sample.summary === '' ? sample.name : sample.summary}`
}

type SampleMenuProps = { readonly samples: readonly SampleFields[]; readonly onChoose: (sample: SampleFields) => void }

export function SampleMenu({ samples, onChoose }: SampleMenuProps): JSX.Element {
  const groups = { fixture: 'fixtures', bundled: 'samples', kept: 'kept deliveries' } as const
  return (
    <label>
      request{' '}
      <select
        id="sample"
        value=""
        onChange={({ currentTarget }) => {
          const sample = samples[Number(currentTarget.value)]
          currentTarget.value = ''
          if (sample !== undefined) onChoose(sample)
        }}
      >
        <option value="">{samples.length === 0 ? 'no samples' : 'choose a sample …'}</option>
        {Object.entries(groups).map(([kind, label]) => {
          const own = samples.flatMap((sample, at) => (sample.kind === kind ? [{ sample, at }] : []))
          return (
            own.length > 0 && (
              <optgroup key={kind} label={label}>
                {own.map(({ sample, at }) => (
                  <option key={at} value={at}>
                    {markUnseen(describeSample(sample).slice(0, 120))}
                  </option>
                ))}
              </optgroup>
            )
          )
        })}
      </select>
    </label>
  )
}
