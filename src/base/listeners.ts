// Lists of listeners that are known at the start: nothing subscribes at run time.

/**
 * Returns the function that calls all listeners, in their order. An exception of a listener is logged: it fails neither the work that is reported, nor
 * the listeners after it.
 */
export function notifyAll<Args extends readonly unknown[]>(
  log: { error(fields: object, line: string): void },
  listeners: readonly ((...args: Args) => void)[],
): (...args: Args) => void {
  return (...args) => {
    for (const listener of listeners) {
      try {
        listener(...args)
      } catch (error) {
        log.error({ err: error }, 'a listener failed inside the gateway; the work that it was told of is done')
      }
    }
  }
}
