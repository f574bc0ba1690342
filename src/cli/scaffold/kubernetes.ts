// Renders the Kubernetes objects of a gateway, and the image with its configuration. No text of the configuration enters the result.
import { renderFile } from './files.ts'
import { computeStopSeconds, type ServiceFacts } from './service.ts'

type KubernetesFacts = Pick<ServiceFacts, 'port' | 'adminPort' | 'stopTimeoutMs' | 'sharesStore' | 'transformsMb'>

/** The seconds in which the endpoint of a terminating pod is removed everywhere. The pod serves until then. */
const drainSeconds = 10

/** The Dockerfile of the pods' image: the program with one configuration. The build context is the config directory. */
export function renderConfigImage(): string {
  return renderFile('Dockerfile.kubernetes')
}

/** Keeps secrets and the store out of the image, even if the Dockerfile is edited. */
export function renderConfigIgnore(): string {
  return renderFile('Dockerfile.kubernetes.dockerignore')
}

/** For a shared database, a Deployment of two gateways. For a store in a file, a StatefulSet of one gateway with a volume. */
export function renderKubernetes(facts: KubernetesFacts): string {
  const { port, adminPort, sharesStore } = facts
  const workload = sharesStore ? 'kubernetes-deployment.yaml' : 'kubernetes-stateful-set.yaml'
  return [
    renderFile('kubernetes-service.yaml', { port }),
    renderFile(workload, { pod: renderPod(facts) }),
    ...(sharesStore ? [renderFile('kubernetes-disruption-budget.yaml')] : []),
    // no rule admits the kubelet: a NetworkPolicy does not block the probes of its own node
    renderFile('kubernetes-network-policy.yaml', { port, adminPort }),
  ].join('---\n')
}

/** The template of a pod. It ends with the list of its volumes, so that further items can follow. */
function renderPod({ port, adminPort, sharesStore, stopTimeoutMs, transformsMb }: KubernetesFacts): string {
  const mounts = sharesStore
    ? ['{ name: state, mountPath: /config/state }', '{ name: agents, mountPath: /config/agents }']
    : [
        '{ name: data, mountPath: /config/state, subPath: state }',
        '{ name: data, mountPath: /config/agents, subPath: agents }',
      ]
  return renderFile('kubernetes-pod.yaml', {
    seconds: drainSeconds + computeStopSeconds({ stopTimeoutMs }),
    port,
    adminPort,
    memoryMb: computeMemoryMb(transformsMb),
    drainSeconds,
    mounts: mounts.map((mount) => `            - ${mount}`).join('\n'),
  }).trimEnd()
}

/** Even with large bodies and turns, the process needs at most half a gigabyte, in addition to the memory for the threads of transforms. */
function computeMemoryMb(transformsMb: number): number {
  return Math.ceil((512 + transformsMb) / 256) * 256
}
