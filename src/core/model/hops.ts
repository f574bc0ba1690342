// Hops: the number of gateways that a text has passed. A limit on this number ends a loop in which each reply starts another run.

/** The header of every request that may start another run: a signed webhook, and a turn for OpenClaw. */
export const hopsHeader = 'hookloom-hops'

/** A request that passed more gateways is refused. */
export const maxHops = 4

/**
 * The number of gateways that a request has passed, by the value of its header: 0 if its text is not a number. If there are several numbers, the
 * highest number counts: a proxy may have joined two headers. Nothing proves the header, but a forged one can only get its own request refused.
 */
export function readHops(value: string): number {
  const counts = value.split(',').map((text) => (/^\s*\d+\s*$/.test(text) ? Number(text) : 0))
  return Math.max(...counts)
}
