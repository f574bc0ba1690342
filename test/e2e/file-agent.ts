// An agent that shows what it gets: its prompt, and the files of its runs.
import { expect } from 'vitest'
import { type Inside, readStore } from './inside.ts'

/** A script for `node -e`. It prints, as JSON, the prompt and the contents of the files below its folder, in base64. */
export const fileAgent = `
const fs = require('node:fs')
const found = {}
const walk = (folder) => {
  for (const entry of fs.existsSync(folder) ? fs.readdirSync(folder, { withFileTypes: true }) : []) {
    if (entry.name === '.gitignore') continue
    const path = folder + '/' + entry.name
    if (entry.isDirectory()) walk(path)
    else found[path] = fs.readFileSync(path).toString('base64')
  }
}
walk('hookloom-files')
process.stdout.write(JSON.stringify({ prompt: fs.readFileSync(0, 'utf8'), found }))
`

/** The jobs of all deliveries, the oldest delivery first. */
export async function readJobs({ dir }: Pick<Inside, 'dir'>) {
  const records = await readStore(dir, (store) => store.deliveries({ limit: 99 }))
  return records.toSorted((one, other) => one.receivedAt - other.receivedAt).flatMap(({ jobs }) => jobs)
}

/** What the agent showed in the first run, when it has ended. `files`: by their paths below the workspace. */
export async function readShown(gateway: Pick<Inside, 'dir'>): Promise<{ prompt: string; files: Map<string, Buffer> }> {
  await expect.poll(async () => (await readJobs(gateway))[0]?.state, { timeout: 20_000 }).toBe('done')
  const [job] = await readJobs(gateway)
  const result = job?.steps.find(({ name }) => name === 'run')?.result ?? '{}'
  // as: `fileAgent` printed it; another agent shows no files
  const { prompt, found = {} } = JSON.parse(result) as { prompt: string; found?: Record<string, string> }
  const files = Object.entries(found).map(([path, text]): [string, Buffer] => [path, Buffer.from(text, 'base64')])
  return { prompt, files: new Map(files) }
}
