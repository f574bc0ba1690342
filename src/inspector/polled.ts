// Values that the page reads again at an interval.
import { useEffect, useRef, useState } from 'preact/hooks'

/**
 * Reads at once, when `version` changes, and every `everyMs` milliseconds while the page is visible. Undefined until the first answer. If a read
 * fails, the last value stays.
 */
export function usePolled<T>(
  read: (signal: AbortSignal) => Promise<T>,
  { everyMs, version }: { readonly everyMs: number; readonly version: string },
): T | undefined {
  const [last, setLast] = useState<T>()
  useEffect(() => {
    const ended = new AbortController()
    const readNow = () =>
      void read(ended.signal)
        .then((answer) => setLast(() => answer))
        .catch(() => undefined)
    readNow()
    const timer = setInterval(() => document.visibilityState === 'visible' && readNow(), everyMs)
    return () => {
      clearInterval(timer)
      ended.abort()
    }
  }, [version])
  return last
}

/** Follows a value, with a delay of `ms` milliseconds. All changes within this time are one change, however fast they follow each other. */
export function useThrottled(value: number, ms: number): number {
  const [followed, setFollowed] = useState(value)
  const newest = useRef(value)
  newest.current = value
  const isBehind = followed !== value
  useEffect(() => {
    if (!isBehind) return
    const timer = setTimeout(() => setFollowed(newest.current), ms)
    return () => clearTimeout(timer)
  }, [followed, isBehind])
  return followed
}
