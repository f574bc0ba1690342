// How long a provider asks us to wait.

/** `Retry-After` in seconds or as a date, and OpenAI's `retry-after-ms`, which is more exact. */
export function toRetryAfterMs(headers: Readonly<Record<string, string | undefined>>, now: number): number | undefined {
  const exact = headers['retry-after-ms']
  if (exact !== undefined && /^\d+(\.\d+)?$/.test(exact.trim())) return Math.ceil(Number(exact))
  const asked = headers['retry-after']?.trim()
  if (asked === undefined || asked === '') return undefined
  if (/^\d+(\.\d+)?$/.test(asked)) return Math.ceil(Number(asked) * 1_000)
  const at = Date.parse(asked)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
