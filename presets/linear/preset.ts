// New issues, comments and project updates become agent turns.
import { defineReplyPreset } from '../signed.ts'

// without apps: a post by the agent itself must not become its next turn
const people = { 'actor.type': { not: ['oauthClient', 'integration'] } }
const who = '{{actor.name | default: "Somebody"}}'

/** Source: https://linear.app/developers/webhooks */
export default defineReplyPreset({
  name: 'linear',
  title: 'New issues, comments and project updates become agent turns.',
  scheme: 'linear',
  from: 'sender',
  instructions: 'Say in a few sentences what is new in Linear, and who should act.',
  events: [
    {
      event: 'issue',
      match: { payload: { ...people, type: 'Issue', action: 'create' } },
      name: 'Linear issue',
      sessionKey: 'hook:linear:{{data.id}}',
      message: [
        `${who} created {{data.identifier | default: "an issue"}}: {{data.title}}`,
        '{{url}}',
        'Priority: {{data.priorityLabel | default: "none"}}; state: {{data.state.name | default: "not given"}}; assigned to {{data.assignee.name | default: "nobody named here"}}',
        '',
        '{{data.description | default: "(no description)" | truncate: 6000}}',
      ],
    },
    {
      event: 'comment',
      match: { payload: { ...people, type: 'Comment', action: 'create' } },
      name: 'Linear comment',
      // a comment goes to the session of its issue
      sessionKey: 'hook:linear:{{data.issueId | default: "comments"}}',
      message: [
        `${who} commented on {{data.issue.identifier | default: "something in Linear"}}: {{data.issue.title | default: "see the link"}}`,
        '{{url}}',
        '',
        '{{data.body | default: "(no text)" | truncate: 6000}}',
      ],
    },
    {
      event: 'project-update',
      match: { payload: { ...people, type: 'ProjectUpdate', action: 'create' } },
      name: 'Linear project update',
      sessionKey: 'hook:linear:{{data.projectId | default: "projects"}}',
      message: [
        `${who} wrote an update on {{data.project.name | default: "a project"}}; its health: {{data.health | default: "not given"}}`,
        '{{url}}',
        '',
        '{{data.body | default: "(no text)" | truncate: 6000}}',
      ],
    },
  ],
})
