// Issues, pull requests, comments, reviews, failed workflows, releases and security alerts become agent turns.
import { defineForgePreset } from '../signed.ts'

const text = (path: string) => `{{${path} | default: "(no text)" | truncate: 6000}}`
const conversation = 'hook:github:{{repository.full_name}}#{{issue.number}}'
// Without bots: GitHub Apps act as bots, and a post by the agent itself must not become its next turn.
const people = { 'sender.type': { not: 'Bot' } }
const pullRequest = 'hook:github:{{repository.full_name}}#{{pull_request.number}}'

/** Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads */
export default defineForgePreset({
  name: 'github',
  title: 'Issues, pull requests, comments, reviews, failed workflows, releases and security alerts become agent turns.',
  scheme: 'github',
  from: 'operator',
  instructions: 'Say in a few sentences what happened in the repository, and what a maintainer should do next.',
  events: [
    {
      event: 'issue',
      match: { event: 'issues', payload: { ...people, action: ['opened', 'reopened'] } },
      name: 'GitHub issue',
      sessionKey: conversation,
      message: [
        '{{sender.login}} {{action}} issue #{{issue.number}} in {{repository.full_name}}: {{issue.title}}',
        '{{issue.html_url}}',
        '',
        text('issue.body'),
      ],
    },
    {
      event: 'pull-request',
      match: { event: 'pull_request', payload: { ...people, action: ['opened', 'reopened', 'ready_for_review'] } },
      name: 'GitHub pull request',
      sessionKey: pullRequest,
      message: [
        'Pull request #{{pull_request.number}} in {{repository.full_name}} is {{action}}, by {{sender.login}}: {{pull_request.title}}',
        '{{pull_request.html_url}}',
        '{{pull_request.head.ref}} into {{pull_request.base.ref}}; draft: {{pull_request.draft | default: "unknown"}}',
        '',
        text('pull_request.body'),
      ],
    },
    {
      event: 'comment',
      match: { event: 'issue_comment', payload: { ...people, action: 'created' } },
      name: 'GitHub comment',
      sessionKey: conversation,
      message: [
        '{{sender.login}} commented on #{{issue.number}} in {{repository.full_name}}: {{issue.title}}',
        '{{comment.html_url}}',
        '',
        text('comment.body'),
      ],
    },
    {
      event: 'review',
      match: { event: 'pull_request_review', payload: { ...people, action: 'submitted' } },
      name: 'GitHub review',
      sessionKey: pullRequest,
      message: [
        '{{sender.login}} reviewed pull request #{{pull_request.number}} in {{repository.full_name}} ({{review.state}}): {{pull_request.title}}',
        '{{review.html_url}}',
        '',
        // a review that consists only of comments on lines has no body
        '{{review.body | default: "(no text: its comments on lines are behind the link)" | truncate: 6000}}',
      ],
    },
    {
      event: 'workflow',
      match: {
        event: 'workflow_run',
        payload: { action: 'completed', 'workflow_run.conclusion': ['failure', 'timed_out', 'startup_failure'] },
      },
      name: 'GitHub workflow',
      sessionKey: 'hook:github:{{repository.full_name}}:{{workflow_run.head_branch | default: "no branch"}}',
      message: [
        'The workflow {{workflow_run.name | default: "(no name)"}} of {{repository.full_name}} ended with {{workflow_run.conclusion}}.',
        '{{workflow_run.html_url}}',
        'Branch: {{workflow_run.head_branch | default: "none"}}, commit {{workflow_run.head_sha | default: "unknown"}}',
        'Started by {{workflow_run.event | default: "an unknown event"}} of {{sender.login | default: "nobody known"}}, attempt {{workflow_run.run_attempt | default: "1"}}',
        'Commit message: {{workflow_run.head_commit.message | default: "(none)" | truncate: 500}}',
      ],
    },
    {
      event: 'release',
      match: { event: 'release', payload: { action: 'published' } },
      name: 'GitHub release',
      sessionKey: 'hook:github:{{repository.full_name}}:releases',
      message: [
        '{{sender.login}} published {{release.tag_name}} of {{repository.full_name}}: {{release.name | default: "(no title)"}}',
        '{{release.html_url}}',
        '',
        text('release.body'),
      ],
    },
    {
      event: 'dependabot',
      match: { event: 'dependabot_alert', payload: { action: ['created', 'reopened', 'reintroduced'] } },
      name: 'Dependabot alert',
      sessionKey: 'hook:github:{{repository.full_name}}:dependabot-{{alert.number}}',
      message: [
        'Dependabot alert #{{alert.number}} in {{repository.full_name}} is {{action}}: {{alert.security_advisory.summary | default: "(no summary)"}}',
        '{{alert.html_url}}',
        'Package: {{alert.dependency.package.name | default: "unknown"}} in {{alert.dependency.manifest_path | default: "an unknown file"}}',
        'Severity: {{alert.security_advisory.severity | default: "unknown"}}; fixed in {{alert.security_vulnerability.first_patched_version.identifier | default: "no version yet"}}',
      ],
    },
    {
      event: 'secret',
      match: { event: 'secret_scanning_alert', payload: { action: ['created', 'reopened', 'publicly_leaked'] } },
      name: 'GitHub leaked secret',
      sessionKey: 'hook:github:{{repository.full_name}}:secret-{{alert.number}}',
      message: [
        'Secret scanning alert #{{alert.number}} in {{repository.full_name}} is {{action}}: a secret of the type {{alert.secret_type_display_name | default: "given below"}} is in the repository.',
        'Type: {{alert.secret_type | default: "unknown"}}',
        'See: {{alert.html_url | default: "the repository’s security tab"}}',
      ],
    },
  ],
})
