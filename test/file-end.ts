// What a test file leaves behind is removed when it ends. Files share a process and its modules, so an `afterAll` at the top of a
// helper would run for the first file only.
type End = () => unknown

const ends: End[] = []

/** Runs `end` after all tests and hooks of the test file that runs now. The last one that was given runs first. */
export function onFileEnd(end: End): void {
  ends.push(end)
}

/** Runs each of them, also after one that fails. Rejects with the first failure. */
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
