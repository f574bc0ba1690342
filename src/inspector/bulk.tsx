// The actions on several deliveries: retry, drop, and run again.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { RetriedFields } from '../model/api/answers.ts'
import { undoMs } from './actions.tsx'
import { call } from './api.ts'
import { formatCount } from './format.ts'

/** The outcome of a retry, or of a copy that runs. */
function describeRetried({ tried, jobs, state }: RetriedFields): string {
  if (tried !== undefined) return 'tried now'
  return jobs.length > 0 ? 'queued again' : `now ${state}`
}

/** Sends the requests one by one, so that a large group does not slow down the gateway. */
export async function actOnAll(
  ids: readonly string[],
  what: 'retry' | 'drop' | 'again',
  onSay: (text: string) => void,
): Promise<void> {
  const results = new Map<string, number>()
  for (const [at, id] of ids.entries()) {
    onSay(`${at + 1} of ${ids.length} …`)
    const result = await call(`POST /api/deliveries/{id}/${what}`, { params: { id } }).then(
      (made) => (!('jobs' in made) ? 'dropped' : describeRetried(made)),
      // without their ids, the messages of the same failure are equal, and are counted together
      (error: unknown) => (error instanceof Error ? error.message.replaceAll(id, 'of this id') : 'failed'),
    )
    results.set(result, (results.get(result) ?? 0) + 1)
  }
  onSay(`${[...results].map(([result, times]) => `${times} ${result}`).join(', ')}.`)
}

type DropAllProps = { readonly count: number; readonly isBusy: boolean; readonly onDrop: () => void }

/** A button that drops after some seconds. If the view is left before then, nothing is dropped. */
export function DropAll({ count, isBusy, onDrop }: DropAllProps): JSX.Element {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const [isWaiting, setWaiting] = useState(false)
  useEffect(() => () => clearTimeout(timer.current), [])
  function start(): void {
    setWaiting(true)
    timer.current = setTimeout(() => {
      setWaiting(false)
      onDrop()
    }, undoMs)
  }
  function undo(): void {
    clearTimeout(timer.current)
    setWaiting(false)
  }
  return (
    <button type="button" class="apart" disabled={isBusy} onClick={isWaiting ? undo : start}>
      {isWaiting ? 'undo the drop' : `drop ${formatCount(count)}`}
    </button>
  )
}
