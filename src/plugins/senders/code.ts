// Forges and builds. Facts are from the senders' public documentation.
import { defineSender, type PayloadReader } from '../../define.ts'
import { userAgent, body, header, joinPlace, sent } from './shared.ts'
import { bitbucketPing } from './handshakes.ts'

export const codeSenders = [
  defineSender({
    name: 'forgejo',
    label: 'Forgejo',
    docs: 'https://forgejo.org/docs/latest/user/webhooks/',
    marks: [sent('x-forgejo-event'), sent('x-forgejo-delivery')],
    event: [header('x-forgejo-event')],
    deliveryId: [header('x-forgejo-delivery')],
    scheme: {
      kind: 'hmac',
      header: 'x-forgejo-signature',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'gitea',
    label: 'Gitea',
    docs: 'https://docs.gitea.com/usage/webhooks',
    marks: [sent('x-gitea-event'), sent('x-gitea-delivery')],
    event: [header('x-gitea-event')],
    deliveryId: [header('x-gitea-delivery')],
    scheme: {
      kind: 'hmac',
      header: 'x-gitea-signature',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'gogs',
    label: 'Gogs',
    docs: 'https://gogs.io/docs/features/webhook',
    marks: [sent('x-gogs-event'), sent('x-gogs-delivery')],
    event: [header('x-gogs-event')],
    deliveryId: [header('x-gogs-delivery')],
    scheme: {
      kind: 'hmac',
      header: 'x-gogs-signature',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'github',
    label: 'GitHub',
    docs: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
    marks: [sent('x-github-event'), sent('x-github-delivery'), userAgent(/^GitHub-Hookshot\//)],
    event: [header('x-github-event')],
    deliveryId: [header('x-github-delivery')],
    scheme: {
      kind: 'hmac',
      header: 'x-hub-signature-256',
      syntax: { prefix: 'sha256=' },
      confidence: 'verified',
    },
    answers: {
      place: (read) => joinPlace(read('repository.full_name'), '#', read('issue.number', 'pull_request.number')),
      commit: (read) =>
        joinPlace(
          read('repository.full_name'),
          '@',
          read('pull_request.head.sha', 'workflow_run.head_sha', 'check_run.head_sha', 'check_suite.head_sha', 'after'),
        ),
      commentText: (read) => read('comment.body'),
    },
  }),
  defineSender({
    name: 'gitlab',
    label: 'GitLab',
    docs: 'https://docs.gitlab.com/user/project/integrations/webhooks/',
    marks: [sent('x-gitlab-event'), sent('x-gitlab-webhook-uuid'), userAgent(/^GitLab\//)],
    event: [header('x-gitlab-event'), body('object_kind')],
    deliveryId: [header('idempotency-key'), header('webhook-id')],
    answers: {
      place: readGitlabPlace,
      commit: (read) =>
        joinPlace(
          read('project.path_with_namespace'),
          '@',
          read(
            'object_attributes.last_commit.id',
            'merge_request.last_commit.id',
            'object_attributes.sha',
            'checkout_sha',
            'after',
            'commit.id',
          ),
        ),
      commentText: (read) => read('object_attributes.note'),
    },
    schemes: [
      {
        id: 'gitlab-token',
        variant: 'secret token',
        kind: 'token',
        header: 'x-gitlab-token',
        confidence: 'verified',
      },
      {
        id: 'gitlab-signing',
        variant: 'signing token',
        kind: 'hmac',
        header: 'webhook-signature',
        encoding: 'base64',
        syntax: { separator: ' ', joint: ',', field: 'v1' },
        template: '{id}.{timestamp}.{body}',
        idHeader: 'webhook-id',
        timestamp: { in: 'header', name: 'webhook-timestamp', unit: 's' },
        toleranceSeconds: 300,
        retries: { time: 'never', docs: 'https://docs.gitlab.com/user/project/integrations/webhooks/' },
        secretEncoding: 'base64',
        secretPrefix: 'whsec_',
        secretHeaders: ['x-gitlab-token'],
        confidence: 'verified',
      },
    ],
  }),
  defineSender({
    name: 'bitbucket',
    label: 'Bitbucket',
    docs: 'https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/',
    marks: [sent('x-hook-uuid', 'x-event-key'), userAgent(/^Bitbucket-Webhooks\//)],
    event: [header('x-event-key')],
    deliveryId: [header('x-request-uuid')],
    scheme: {
      kind: 'hmac',
      header: 'x-hub-signature',
      syntax: { prefix: 'sha256=' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'bitbucket-server',
    label: 'Bitbucket Data Center',
    docs: 'https://confluence.atlassian.com/bitbucketserver/manage-webhooks-938025878.html',
    marks: [sent('x-event-key')],
    event: [header('x-event-key'), body('eventKey')],
    deliveryId: [header('x-request-id')],
    scheme: {
      kind: 'hmac',
      header: 'x-hub-signature',
      syntax: { prefix: 'sha256=' },
      handshakes: [bitbucketPing],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'azure-devops',
    label: 'Azure DevOps',
    docs: 'https://learn.microsoft.com/azure/devops/service-hooks/services/webhooks',
    event: [body('eventType')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'basic',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'buildkite',
    label: 'Buildkite',
    docs: 'https://buildkite.com/docs/apis/webhooks/pipelines',
    marks: [sent('x-buildkite-event')],
    event: [header('x-buildkite-event'), body('event')],
    deliveryId: [header('x-buildkite-request')],
    scheme: {
      kind: 'hmac',
      header: 'x-buildkite-signature',
      syntax: { separator: ',', joint: '=', field: 'signature' },
      template: '{timestamp}.{body}',
      timestamp: { in: 'field', name: 'timestamp', unit: 's' },
      toleranceSeconds: 300,
      retries: { time: 'limited', seconds: 300, docs: 'https://buildkite.com/docs/apis/webhooks/pipelines' },
      secretHeaders: ['x-buildkite-token'],
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'circleci',
    label: 'CircleCI',
    docs: 'https://circleci.com/docs/guides/integration/outbound-webhooks/',
    marks: [sent('circleci-event-type'), sent('circleci-signature')],
    event: [header('circleci-event-type'), body('type')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'circleci-signature',
      syntax: { separator: ',', joint: '=', field: 'v1' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'vercel',
    label: 'Vercel',
    docs: 'https://vercel.com/docs/webhooks/webhooks-api',
    marks: [sent('x-vercel-signature')],
    event: [body('type')],
    deliveryId: [body('id')],
    scheme: {
      kind: 'hmac',
      header: 'x-vercel-signature',
      algorithm: 'sha1',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'netlify',
    label: 'Netlify',
    docs: 'https://docs.netlify.com/site-deploys/notifications/',
    marks: [sent('x-netlify-event')],
    event: [header('x-netlify-event')],
    scheme: {
      kind: 'jwt',
      header: 'x-webhook-signature',
      bearer: false,
      algorithm: 'HS256',
      issuers: ['netlify'],
      bodyHashClaim: 'sha256',
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'snyk',
    label: 'Snyk',
    docs: 'https://docs.snyk.io/snyk-api/using-specific-snyk-apis/webhooks-apis',
    marks: [sent('x-snyk-event')],
    event: [header('x-snyk-event')],
    deliveryId: [header('x-snyk-transport-id')],
    scheme: {
      kind: 'hmac',
      header: 'x-hub-signature',
      syntax: { prefix: 'sha256=' },
      confidence: 'verified',
    },
  }),
  defineSender({
    name: 'sonarqube',
    label: 'SonarQube',
    docs: 'https://docs.sonarsource.com/sonarqube-server/project-administration/webhooks',
    marks: [sent('x-sonar-webhook-hmac-sha256'), sent('x-sonarqube-project')],
    event: [body('qualityGate.status'), body('status')],
    deliveryId: [body('taskId')],
    scheme: {
      kind: 'hmac',
      header: 'x-sonar-webhook-hmac-sha256',
      confidence: 'verified',
    },
  }),
]

/** https://docs.gitlab.com/user/project/integrations/webhook_events/ */
function readGitlabPlace(read: PayloadReader): string | undefined {
  // a reply to an internal note would be a public note
  if (read('event_type') === 'confidential_note') return undefined
  const project = read('project.path_with_namespace')
  const kind = read('object_kind')
  const own = read('object_attributes.iid')
  const request = read('merge_request.iid') ?? (kind === 'merge_request' ? own : undefined)
  if (request !== undefined) return joinPlace(project, '!', request)
  return joinPlace(project, '#', read('issue.iid') ?? (kind === 'issue' ? own : undefined))
}
