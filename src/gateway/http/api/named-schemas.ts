// The schemas that the OpenAPI document names.
import type { z } from 'zod'
import * as answers from '../../../model/api/answers.ts'
import { AuditFields } from '../../../model/api/audit.ts'
import * as bench from '../../../model/api/bench.ts'
import { HealthFields } from '../../../model/api/health.ts'
import * as operations from '../../../model/api/operations.ts'
import { RefusalFields } from '../../../model/api/refusals.ts'
import { CapturedFields, ReplayReport } from '../../../model/api/replay.ts'
import { RunResource } from '../../../model/api/run.ts'
import * as sessions from '../../../model/api/sessions.ts'

export const namedSchemas: Readonly<Record<string, z.ZodType>> = {
  DeliveryRow: answers.DeliveryRow,
  Delivery: answers.ShownDelivery,
  DeliveryRequest: answers.RequestFields,
  Job: answers.JobFields,
  Run: answers.RunFields,
  Refusal: RefusalFields,
  Retried: answers.RetriedFields,
  Ran: answers.RetryFields,
  Session: sessions.SessionFields,
  Message: sessions.MessageFields,
  Event: sessions.ShownEvent,
  Pause: operations.PauseFields,
  Budget: operations.BudgetFields,
  AuditEntry: AuditFields,
  Sender: operations.SenderFields,
  Token: operations.TokenFields,
  Cancelled: operations.CancelledFields,
  Health: HealthFields,
  Hook: bench.HookFields,
  Tried: bench.TriedFields,
  Captured: CapturedFields,
  Replay: ReplayReport,
  RunResource,
}
