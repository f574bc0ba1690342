// A rerunner whose jobs no worker claims.
import type { OnStored } from '../../../../src/gateway/deliveries/listeners.ts'
import { createModuleState } from '../../../../src/gateway/deliveries/module-state.ts'
import { Rerunner } from '../../../../src/gateway/deliveries/rerun.ts'
import { createSettler } from '../../../../src/gateway/deliveries/settle.ts'
import type { Store } from '../../../../src/store/store.ts'

type RerunnerStage = Omit<ConstructorParameters<typeof Rerunner>[0], 'settler' | 'store'> & {
  readonly store: Store
  readonly onStored?: OnStored
}

export function createTestRerunner({ onStored = () => {}, ...parts }: RerunnerStage): Rerunner {
  const { store, clock, newId, log } = parts
  const settler = createSettler({
    store,
    state: createModuleState({ store, clock, log }),
    clock,
    newId,
    keepByDefault: false,
    lookForNew() {},
    onStored,
    onRepeated() {},
    onDecided() {},
  })
  return new Rerunner({ ...parts, settler })
}
