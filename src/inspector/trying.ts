// Asks the gateway what would become of the request on the bench, and what its draft changes on kept requests.
import { useEffect, useState } from 'preact/hooks'
import type { DraftReport, TriedFields } from '../model/api/bench.ts'
import { call } from './api.ts'
import { describeException } from './said.ts'
import { type BenchInput, isUnfinished, toTypedRequest } from './typed.ts'

/** Keystrokes within this time cause one request. */
const gatherMs = 30
/** A try that takes longer probably waits for a thread. */
const slowMs = 400
/** Kept requests are tried when nobody has typed for this time. */
const restMs = 300

type Draft = Partial<Pick<BenchInput, 'template' | 'mappingId' | 'code'>>

/** The unsaved template and the unsaved code of the input. Undefined if there is none. A blank template is none. */
export function readDraft({ template, mappingId, code }: BenchInput): Draft | undefined {
  const hasTemplate = template !== undefined && template.trim() !== ''
  return hasTemplate || code !== undefined ? { code, ...(hasTemplate && { template, mappingId }) } : undefined
}

type Answer<Found> = { readonly found: Found | undefined; readonly problem: string }

/** Tries the request. The last result is shown until the next one comes, so nothing on the page moves. `typed`: undefined tries nothing. */
export function useTried(hook: string, typed: BenchInput | undefined, saved: string) {
  const [{ found, problem }, setAnswer] = useState<Answer<TriedFields>>({ found: undefined, problem: '' })
  const [wait, setWait] = useState<'none' | 'short' | 'long'>('none')
  useEffect(() => {
    if (typed === undefined) return setAnswer({ found: undefined, problem: '' })
    // at each letter of an unfinished path, the result would be an error
    if (isUnfinished(typed.template)) return setWait('none')
    const ended = new AbortController()
    const start = setTimeout(() => void run(typed, ended.signal), gatherMs)
    return () => {
      clearTimeout(start)
      ended.abort()
    }
  }, [hook, typed?.body, typed?.headers, typed?.query, typed?.template, typed?.mappingId, typed?.code, saved])

  async function run(input: BenchInput, signal: AbortSignal): Promise<void> {
    setWait('short')
    const slow = setTimeout(() => setWait('long'), slowMs)
    try {
      const body = { ...toTypedRequest(hook, input), draft: readDraft(input) }
      const answer = await call('POST /api/try', { body, signal })
      if ('decision' in answer) setAnswer({ found: answer, problem: '' })
    } catch (error) {
      // the result is not needed, because a newer request has begun
      if (signal.aborted) return
      setAnswer((before) => ({ ...before, problem: describeException(error, 'It could not be tried.') }))
    } finally {
      clearTimeout(slow)
    }
    setWait('none')
  }
  return { tried: found, problem, wait }
}

/** Compares the draft with the live code, on kept requests. The next keystroke ends a comparison, so there is never more than one. */
export function useDraftReport(hook: string, draft: Draft | undefined, saved: string) {
  const [{ found, problem }, setAnswer] = useState<Answer<DraftReport>>({ found: undefined, problem: '' })
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    if (draft === undefined) {
      setBusy(false)
      return setAnswer({ found: undefined, problem: '' })
    }
    if (isUnfinished(draft.template)) return
    const ended = new AbortController()
    setBusy(true)
    const start = setTimeout(() => {
      void call('POST /api/try/kept', { body: { hook, ...draft }, signal: ended.signal })
        .then((report) => setAnswer({ found: report, problem: '' }))
        .catch((error: unknown) => {
          if (!ended.signal.aborted) setAnswer({ found: undefined, problem: describeException(error) })
        })
        .finally(() => !ended.signal.aborted && setBusy(false))
    }, restMs)
    return () => {
      clearTimeout(start)
      ended.abort()
    }
  }, [hook, draft?.template, draft?.mappingId, draft?.code, saved])
  return { compared: found, problem, isBusy }
}
