// Issues, merge requests, comments, failed pipelines and releases become agent turns.
import { z } from 'zod'
import { definePreset } from '../../src/define.ts'
import { type EventMapping, forgeOptions, buildParts, toVerifySettings } from '../signed.ts'

const GitlabOptions = z.strictObject({
  ...forgeOptions,
  /** How the webhook of the project proves itself: with its secret token, or with its signing token (`whsec_…`). */
  scheme: z.enum(['gitlab-token', 'gitlab-signing']).default('gitlab-token'),
})
type GitlabOptions = z.infer<typeof GitlabOptions>

const project = '{{project.path_with_namespace}}'
const text = (path: string) => `{{${path} | default: "(no text)" | truncate: 6000}}`
const who = '{{user.name | default: "Somebody"}}'
// without updates, and without events that have no action: such an event may be an edit too
const opened = ['open', 'reopen']
// Without the users of project and group access tokens, whose names match this pattern: a post by the agent itself must not become its next turn.
// Source: https://docs.gitlab.com/user/project/settings/project_access_tokens/#bot-users-for-projects
const people = { 'user.username': { not: { matches: '^(project|group)_[0-9]+_bot' } } }

/** Source: https://docs.gitlab.com/user/project/integrations/webhook_events/ */
const events: readonly EventMapping[] = [
  {
    event: 'issue',
    match: { payload: { ...people, object_kind: 'issue', 'object_attributes.action': opened } },
    name: 'GitLab issue',
    sessionKey: `hook:gitlab:${project}#{{object_attributes.iid}}`,
    message: [
      `Issue #{{object_attributes.iid}} in ${project} ({{object_attributes.action}}), by ${who}: {{object_attributes.title}}`,
      '{{object_attributes.url}}',
      '',
      text('object_attributes.description'),
    ],
  },
  {
    event: 'merge-request',
    match: { payload: { ...people, object_kind: 'merge_request', 'object_attributes.action': opened } },
    name: 'GitLab merge request',
    sessionKey: `hook:gitlab:${project}!{{object_attributes.iid}}`,
    message: [
      `Merge request !{{object_attributes.iid}} in ${project} ({{object_attributes.action}}), by ${who}: {{object_attributes.title}}`,
      '{{object_attributes.url}}',
      '{{object_attributes.source_branch}} into {{object_attributes.target_branch}}; draft: {{object_attributes.draft | default: "unknown"}}',
      '',
      text('object_attributes.description'),
    ],
  },
  {
    event: 'merge-request-comment',
    match: { payload: { ...people, object_kind: 'note', 'object_attributes.noteable_type': 'MergeRequest' } },
    name: 'GitLab comment',
    sessionKey: `hook:gitlab:${project}!{{merge_request.iid}}`,
    message: [
      `${who} commented on merge request !{{merge_request.iid}} in ${project}: {{merge_request.title}}`,
      '{{object_attributes.url}}',
      '',
      text('object_attributes.note'),
    ],
  },
  {
    event: 'issue-comment',
    match: { payload: { ...people, object_kind: 'note', 'object_attributes.noteable_type': 'Issue' } },
    name: 'GitLab comment',
    sessionKey: `hook:gitlab:${project}#{{issue.iid}}`,
    message: [
      `${who} commented on issue #{{issue.iid}} in ${project}: {{issue.title}}`,
      '{{object_attributes.url}}',
      '',
      text('object_attributes.note'),
    ],
  },
  {
    event: 'commit-comment',
    match: { payload: { ...people, object_kind: 'note', 'object_attributes.noteable_type': 'Commit' } },
    name: 'GitLab comment',
    sessionKey: `hook:gitlab:${project}:commit-{{object_attributes.commit_id}}`,
    message: [
      `${who} commented on commit {{object_attributes.commit_id}} in ${project}`,
      '{{object_attributes.url}}',
      '',
      text('object_attributes.note'),
    ],
  },
  {
    event: 'pipeline',
    match: { payload: { object_kind: 'pipeline', 'object_attributes.status': 'failed' } },
    name: 'GitLab pipeline',
    sessionKey: `hook:gitlab:${project}:{{object_attributes.ref}}`,
    message: [
      `Pipeline {{object_attributes.id}} of ${project} failed.`,
      'See: {{object_attributes.url | default: "the project’s pipelines"}}',
      'Branch or tag: {{object_attributes.ref | default: "unknown"}}, commit {{object_attributes.sha | default: "unknown"}}',
      `Started by ${who}; trigger: {{object_attributes.source | default: "not given"}}`,
      'Commit message: {{commit.title | default: "(none)" | truncate: 500}}',
    ],
  },
  {
    event: 'release',
    match: { payload: { object_kind: 'release', action: 'create' } },
    name: 'GitLab release',
    sessionKey: `hook:gitlab:${project}:releases`,
    message: [`${project} released {{tag}}: {{name | default: "(no title)"}}`, '{{url}}', '', text('description')],
  },
]

const instructions = 'Say in a few sentences what happened in the project, and what a maintainer should do next.'

export default definePreset<GitlabOptions>({
  name: 'gitlab',
  title: 'Issues, merge requests, comments, failed pipelines and releases become agent turns.',
  options: GitlabOptions,
  setup: { key: { option: 'secret', from: 'operator' } },
  build: ({ scheme, ...own }) =>
    buildParts('gitlab', { own, verify: toVerifySettings(scheme, own), instructions, events }),
})
