/** A GitHub Actions run that ended in failure becomes a message to the agent; every other run and stage is skipped. */
import { defineTransform } from 'hookloom'

/** What is read of a `workflow_run` event: https://docs.github.com/webhooks/webhook-events-and-payloads#workflow_run */
type WorkflowRunEvent = {
  action?: string
  workflow_run?: {
    id: number
    name?: string | null
    display_title?: string
    html_url: string
    /** Null while it runs. */
    conclusion: string | null
    /** What started it: `push`, `schedule`, … */
    event: string
    head_branch: string | null
    head_sha: string
    run_number: number
    run_attempt?: number
    triggering_actor?: { login: string } | null
    /** Only those of the repository itself, none from forks. */
    pull_requests?: { number: number }[]
  }
  workflow?: { name: string } | null
  repository?: { full_name: string }
}

const failures: Record<string, string> = {
  failure: 'failed',
  timed_out: 'timed out',
  startup_failure: 'could not start',
}

export default defineTransform<WorkflowRunEvent>(({ payload }, { log }) => {
  const { action, workflow_run: run, workflow, repository } = payload
  const conclusion = run?.conclusion ?? ''
  const what = Object.hasOwn(failures, conclusion) ? failures[conclusion] : undefined
  if (action !== 'completed' || run === undefined || repository === undefined || what === undefined) {
    log(`skipped: ${conclusion || action || 'no workflow run'}`)
    return null
  }

  // `||`: GitHub sends an empty name as well as none
  const name = run.name || workflow?.name || `run ${run.id}`
  const branch = run.head_branch ? ` on ${run.head_branch}` : ''
  const title = run.display_title ? `: ${run.display_title}` : ''
  const by = run.triggering_actor ? ` by ${run.triggering_actor.login}` : ''
  const pulls = (run.pull_requests ?? []).map((pull) => `#${pull.number}`)
  return {
    kind: 'agent',
    name: `Workflow ${name} in ${repository.full_name}`,
    // one session a run: a second attempt continues where the first one failed
    sessionKey: `hook:github:run:${repository.full_name}:${run.id}`,
    message: [
      `Workflow ${name} ${what}${branch} in ${repository.full_name}${title}`,
      [
        `run ${run.run_number}${run.run_attempt === undefined ? '' : `, attempt ${run.run_attempt}`}`,
        `${run.event}${by}`,
        `commit ${run.head_sha.slice(0, 7)}`,
        ...(pulls.length > 0 ? [`pull request ${pulls.join(', ')}`] : []),
      ].join(' · '),
      run.html_url,
    ].join('\n'),
  }
})
