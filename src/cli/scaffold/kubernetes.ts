// Renders the Kubernetes objects of a gateway, and the image with its configuration. Pure. No text of the configuration enters the
// result.
import { computeStopSeconds, type ServiceFacts } from './service.ts'

type KubernetesFacts = Pick<ServiceFacts, 'port' | 'adminPort' | 'stopTimeoutMs' | 'sharesStore' | 'transformsMb'>

/** The seconds in which the endpoint of a terminating pod is removed everywhere. The pod serves until then. */
const drainSeconds = 10
const labels = '{ app.kubernetes.io/name: hookloom }'
const selector = `{ matchLabels: ${labels} }`
/** The user `node` of the image. */
const uid = 1000

/** The Dockerfile of the pods' image: the program with one configuration. The build context is the config directory. */
export function renderConfigImage(): string {
  return `# the image of Dockerfile, with the configuration and the modules of this folder
FROM hookloom
COPY --chown=${uid}:${uid} hookloom.jsonc /config/
COPY --chown=${uid}:${uid} hooks /config/hooks
ENV HOOKLOOM_HOME=/config
`
}

/** Keeps secrets and the store out of the image, even if the Dockerfile is edited. */
export function renderConfigIgnore(): string {
  return ['/*', '!/hookloom.jsonc', '!/hooks', '**/.env*', '**/*.db*', ''].join('\n')
}

/** For a shared database, a Deployment of two gateways. For a store in a file, a StatefulSet of one gateway with a volume. */
export function renderKubernetes(facts: KubernetesFacts): string {
  const workload = facts.sharesStore ? renderDeployment(facts) : renderStatefulSet(facts)
  const budget = facts.sharesStore ? [disruptionBudget] : []
  return [renderService(facts), workload, ...budget, renderNetworkPolicy(facts)].join('---\n')
}

function renderService({ port }: KubernetesFacts): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: hookloom
  labels: ${labels}
spec:
  selector: ${labels}
  ports: [{ name: hooks, port: ${port}, targetPort: hooks }]
`
}

function renderDeployment(facts: KubernetesFacts): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: hookloom
  labels: ${labels}
spec:
  replicas: 2
  selector: ${selector}
  minReadySeconds: 5
  # a new gateway is ready before an old one ends
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
  template:
${renderPod(facts)}
        - { name: state, emptyDir: {} }
        # the workspaces of the agents: if agents keep files there, use a volume that all nodes can write
        - { name: agents, emptyDir: {} }
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: ${selector}
`
}

function renderStatefulSet(facts: KubernetesFacts): string {
  return `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: hookloom
  labels: ${labels}
spec:
  # one gateway owns the file of the store. For more, set store.url, move this file away, and run "hookloom add service" again
  replicas: 1
  serviceName: hookloom
  selector: ${selector}
  updateStrategy: { type: RollingUpdate }
  template:
${renderPod(facts)}
  volumeClaimTemplates:
    - metadata: { name: data }
      spec:
        # a disk of one node: SQLite does not work reliably on network file systems
        accessModes: [ReadWriteOnce]
        resources: { requests: { storage: 5Gi } }
`
}

/** The template of a pod. It ends with the list of its volumes, so that further items can follow. */
function renderPod({ port, adminPort, sharesStore, stopTimeoutMs, transformsMb }: KubernetesFacts): string {
  const seconds = drainSeconds + computeStopSeconds({ stopTimeoutMs })
  const mounts = sharesStore
    ? ['{ name: state, mountPath: /config/state }', '{ name: agents, mountPath: /config/agents }']
    : [
        '{ name: data, mountPath: /config/state, subPath: state }',
        '{ name: data, mountPath: /config/agents, subPath: agents }',
      ]
  return `    metadata:
      labels: ${labels}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      # above server.stopTimeoutMs, and the time in which all learn that the pod ends
      terminationGracePeriodSeconds: ${seconds}
      securityContext:
        runAsNonRoot: true
        runAsUser: ${uid}
        runAsGroup: ${uid}
        fsGroup: ${uid}
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: gateway
          image: registry.example.com/hookloom:1
          ports:
            - { name: hooks, containerPort: ${port} }
            - { name: admin, containerPort: ${adminPort} }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          resources:
            requests: { cpu: 100m, memory: 256Mi }
            limits: { memory: ${computeMemoryMb(transformsMb)}Mi }
          # the store of an old version may be migrated first
          startupProbe: { httpGet: { path: /livez, port: admin }, periodSeconds: 2, failureThreshold: 300 }
          livenessProbe: { httpGet: { path: /livez, port: admin }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
          readinessProbe: { httpGet: { path: /readyz, port: admin }, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 2 }
          # serves until no request is sent here any more
          lifecycle: { preStop: { exec: { command: [sleep, '${drainSeconds}'] } } }
          volumeMounts:
            - { name: env, mountPath: /config/.env, subPath: .env, readOnly: true }
${mounts.map((mount) => `            - ${mount}`).join('\n')}
            - { name: tmp, mountPath: /tmp }
      volumes:
        - { name: env, secret: { secretName: hookloom-env, defaultMode: 288 } } # 0440
        - { name: tmp, emptyDir: {} }`
}

/** Even with large bodies and turns, the process needs at most half a gigabyte, in addition to the memory for the threads of transforms. */
function computeMemoryMb(transformsMb: number): number {
  return Math.ceil((512 + transformsMb) / 256) * 256
}

const disruptionBudget = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: hookloom
spec:
  minAvailable: 1
  selector: ${selector}
`

/** No rule admits the kubelet: a NetworkPolicy does not block the probes of its own node. */
function renderNetworkPolicy({ port, adminPort }: KubernetesFacts): string {
  return `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: hookloom
spec:
  podSelector: ${selector}
  policyTypes: [Ingress, Egress]
  ingress:
    # the namespace of your ingress controller: only it may name the sender in X-Forwarded-For
    - from: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: ingress-nginx } } }]
      ports: [{ port: ${port} }]
    # the namespace of Prometheus
    - from: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: monitoring } } }]
      ports: [{ port: ${adminPort} }]
  egress:
    - ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]
    # everything but the metadata services of clouds
    - to:
        - ipBlock: { cidr: 0.0.0.0/0, except: [169.254.0.0/16] }
        - ipBlock: { cidr: '::/0', except: ['fe80::/10', 'fd00:ec2::254/128'] }
`
}
