// The order of the test files: those that take longest start first, so that none of them runs alone at the end. Without a cache of
// durations, as on a clean clone, Vitest starts the largest files first, and the longest tests are in some of the smallest files.
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that took more than 100 seconds in CI, the longest first. */
const longest = [
  'test/long/storm.test.ts',
  'test/long/pictures.test.ts',
  'test/long/status-kills.test.ts',
  'test/long/missed-hour.test.ts',
  'test/contract/sqlite.test.ts',
  'test/long/stories.test.ts',
  'test/e2e/mail-files.test.ts',
  'test/e2e/status-nodes.test.ts',
  'test/e2e/event-server.test.ts',
  'test/long/relay-kills.test.ts',
  'test/long/event-server-kills.test.ts',
  'test/long/interleaved.test.ts',
]

/** Changes the order within each project only. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const projects = new Map<string, TestSpecification[]>()
    // oxlint-disable-next-line unicorn/no-array-sort -- not the sort of an array
    for (const file of await super.sort(files))
      projects.set(file.project.name, [...(projects.get(file.project.name) ?? []), file])
    return [...projects.values()].flatMap((ofProject) => ofProject.toSorted((a, b) => findPlace(a) - findPlace(b)))
  }
}

function findPlace({ moduleId, project }: TestSpecification): number {
  const place = longest.indexOf(relative(project.config.root, moduleId))
  return place === -1 ? longest.length : place
}
