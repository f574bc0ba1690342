// The APIs of a project: turned on where the signed-in account may do that.
import { z } from 'zod'
import { parse } from './api.ts'
import type { GoogleCall } from './call.ts'
import type { StepState } from './pubsub.ts'

const Service = z.object({ state: z.string() })

/** `service`: such as `gmail.googleapis.com`. */
export async function ensureService(
  { call, base }: { call: GoogleCall; base: string },
  { project, service }: { project: string; service: string },
): Promise<StepState> {
  const url = `${base}/v1/projects/${project}/services/${service}`
  const { state } = parse(Service, await call({ method: 'GET', url }), 'services.get')
  if (state === 'ENABLED') return 'ok'
  await call({ method: 'POST', url: `${url}:enable`, body: {} })
  return 'changed'
}
