// fetch, with a limit on what comes back: an answer that never ends, in a stream, in one line or in an error page, fills no memory.
import type { Fetch } from './patient-fetch.ts'

export type BoundedFetch = {
  readonly fetch: Fetch
  /** True: an answer went over the limit and was cut off. */
  readonly isOver: () => boolean
}

/** For one call. `maxBytes`: of the body of an answer, as it comes. */
export function boundFetch(fetch: Fetch, maxBytes: number): BoundedFetch {
  let isOver = false
  return {
    isOver: () => isOver,
    fetch: async (input, init) => {
      const answer = await fetch(input, init)
      if (answer.body === null) return answer
      let left = maxBytes
      const counted = answer.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            left -= chunk.length
            isOver ||= left < 0
            if (left < 0) controller.error(new Error('The answer is over its limit.'))
            else controller.enqueue(chunk)
          },
        }),
      )
      const { status, statusText, headers } = answer
      return new Response(counted, { status, statusText, headers })
    },
  }
}
