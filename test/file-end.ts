// Cleans up when a test file ends. Files share a process and its modules, so an `afterAll` at the top of a helper would run for the first
// file only.
type End = () => unknown

const ends: End[] = []

/** Runs `end` after all tests and hooks of the current test file. The last registered one runs first. */
export function onFileEnd(end: End): void {
  ends.push(end)
}

/** Runs all registered functions, even after one fails. Rejects with the first failure. */
export async function endFile(): Promise<void> {
  const failures: unknown[] = []
  for (const end of ends.splice(0).toReversed()) {
    try {
      await end()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}
