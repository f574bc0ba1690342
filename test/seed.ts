/** The seed of faults and random walks: `HOOKLOOM_SEED`, or another one in each process. `npm run accept` and failures print it. */
export const seed = Number(process.env['HOOKLOOM_SEED'] ?? Date.now() % 1_000_000)

/** Runs a case of faults. Its failure names the seed that repeats it. */
export async function withSeed<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw new Error(`It failed with HOOKLOOM_SEED=${seed}.`, { cause: error })
  }
}
