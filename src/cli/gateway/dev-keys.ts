// The keys of `hookloom dev`, each followed by Enter. The terminal is not in raw mode, so Ctrl-C and Ctrl-Z keep their meaning.
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

type DevKeys = {
  /** Opens the page. */
  readonly open: () => Promise<unknown>
  /** Stops the gateway. */
  readonly quit: () => void
  readonly print: (text: string) => void
}

export const keysHelp = ['o + Enter opens the page', 'q + Enter stops the gateway', '? + Enter shows the keys'].join(
  '\n',
)

/** Reads keys until the input ends, and ignores other lines, because somebody may type notes into the log. Returns a function that stops
 * reading. */
export function readDevKeys(input: Readable, { open, quit, print }: DevKeys): () => void {
  const lines = createInterface({ input, terminal: false })
  lines.on('line', (line) => {
    const key = line.trim()
    if (key === '?' || key === 'h') print(keysHelp)
    else if (key === 'q') quit()
    else if (key === 'o')
      void open().catch((error: unknown) => print(error instanceof Error ? error.message : 'It failed.'))
  })
  return () => lines.close()
}
