/** Says on standard error what is being waited for, once it takes longer than a second. */
export async function withProgress<T>(label: string, work: () => Promise<T>): Promise<T> {
  const timer = setTimeout(() => process.stderr.write(`${label} …\n`), 1_000)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}
