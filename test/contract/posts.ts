import { describe, expect, test } from 'vitest'
import type { ClaimedJob, Post, Step } from '../../src/model/job.ts'
import { claimOne } from './jobs.ts'
import { newDelivery, newJob } from './stage.ts'
import type { Stage } from './store.ts'

const delivered: Step = { name: 'deliver', state: 'done', at: 1 }

function newPost(part: number, over: Partial<Post> = {}): Post {
  const text = `part ${part} with a " and a \0`
  return { part, channel: 'slack', to: 'C1', nonce: `nonce-${part}`, text, state: 'waiting', at: 1, ...over }
}

export function describePosts(stage: () => Stage): void {
  async function claimJob(): Promise<ClaimedJob> {
    const { store, clock } = stage()
    await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
    return claimOne(store)
  }

  describe('posts of a run', () => {
    test('posts are stored as last reported, with or without a step', async () => {
      const { store } = stage()
      const job = await claimJob()
      expect(job.posts).toEqual([])
      const waiting = [newPost(0), newPost(1, { to: undefined })]
      expect(await store.report(job, { posts: waiting })).toBe(true)
      expect(await store.job(job.id)).toMatchObject({ state: 'running', steps: [] })
      expect((await store.job(job.id))?.posts).toEqual(waiting)
      const sent = waiting.map((post) => ({ ...post, state: 'sent' as const, id: `m-${post.part}` }))
      await store.report(job, { posts: sent, steps: [delivered] })
      expect((await store.job(job.id))?.posts).toEqual(sent)
      expect((await store.delivery(job.id))?.jobs[0]?.posts).toEqual(sent)
    })

    test('posts are stored even if the step is already stored, and unchanged by a report without posts', async () => {
      const { store } = stage()
      const job = await claimJob()
      await store.report(job, { posts: [newPost(0)], steps: [delivered] })
      await store.report(job, { posts: [newPost(0, { state: 'unknown' })], steps: [delivered] })
      await store.report(job, { outcome: { kind: 'retry', afterMs: 0, error: 'busy' } })
      expect(await claimOne(store)).toMatchObject({ steps: [delivered], posts: [{ state: 'unknown' }] })
    })

    test('a post stored without text has the reply of the run, even after a requeue', async () => {
      const { store } = stage()
      const job = await claimJob()
      const { text: _, ...post } = newPost(0, { state: 'sent', id: 'm-0' })
      const run: Step = { name: 'run', state: 'done', at: 1, result: 'A reply with a " and a \0' }
      await store.report(job, { posts: [post, newPost(1)], steps: [run], outcome: { kind: 'dead', error: 'no route' } })
      const whole = { ...post, text: run.result }
      expect((await store.job(job.id))?.posts).toEqual([whole, newPost(1)])
      expect((await store.delivery(job.id))?.jobs[0]?.posts).toEqual([whole, newPost(1)])
      await store.requeue(job.id)
      expect((await claimOne(store)).posts).toEqual([whole])
    })

    test('steps and posts of several recipients are kept apart, and a requeue keeps the steps that are recorded', async () => {
      const { store } = stage()
      const job = await claimJob()
      const second: Step = { name: 'deliver-2', state: 'done', at: 1 }
      const served = newPost(0, { step: 'deliver-2', state: 'sent', id: 'm-0' })
      const refused = newPost(0, { failed: 'slack C1: gone' })
      await store.report(job, { posts: [refused, served], steps: [second] })
      // reports the same step again, as a gateway does when the answer to its report was lost
      await store.report(job, { posts: [refused, served], steps: [second] })
      await store.report(job, { outcome: { kind: 'dead', error: 'slack C1: gone' } })
      expect(await store.job(job.id)).toMatchObject({ state: 'dead', steps: [second], posts: [refused, served] })
      await store.requeue(job.id)
      const again = await claimOne(store)
      expect([again.steps, again.posts]).toEqual([[second], [served]])
      await store.report(again, { steps: [delivered], outcome: { kind: 'done' } })
      expect(await store.job(job.id)).toMatchObject({ state: 'done', steps: [second, delivered] })
    })

    test('posts of a worker that lost its lease are not stored', async () => {
      const { store, clock } = stage()
      const stale = await claimJob()
      clock.advance(30_000)
      await claimOne(store)
      expect(await store.report(stale, { posts: [newPost(0)] })).toBe(false)
      expect((await store.job(stale.id))?.posts).toEqual([])
    })

    test('posts that were sent survive a requeue of their run, and those that were not sent are deleted', async () => {
      const { store } = stage()
      const job = await claimJob()
      const sent = [newPost(0, { state: 'sent', id: 'm-0' }), newPost(2, { state: 'sent', id: 'm-2' })] as const
      const posts = [sent[0], newPost(1), sent[1], newPost(3, { state: 'unknown' })]
      await store.report(job, { posts, outcome: { kind: 'dead', error: 'no route' } })
      expect((await store.job(job.id))?.posts).toEqual(posts)
      await store.requeue(job.id)
      expect((await claimOne(store)).posts).toEqual(sent)
    })

    test('a requeue deletes the posts of its run if no post was sent', async () => {
      const { store } = stage()
      const job = await claimJob()
      await store.report(job, { posts: [newPost(0), newPost(1)], outcome: { kind: 'dead', error: 'no route' } })
      await store.requeue(job.id)
      expect((await claimOne(store)).posts).toEqual([])
    })
  })
}
