// The options and the help of `hookloom budget` and `hookloom state`.
import type { RaiseOptions } from '../budget.ts'
import { type CliCommand, jsonOption } from '../terminal/usage.ts'

export function addBudgetCommands(program: CliCommand): void {
  const budget = program
    .command('budget')
    .summary('list the budgets, or add to one')
    .description('Lists the budgets: what is spent, reserved and left, and when each one resets.')
    .addOption(jsonOption())
    .examples('hookloom budget', 'hookloom budget raise daily --usd 10')
    .run(async (context) => (await import('../budget.ts')).budget(context))
  budget
    .command('raise')
    .summary('add to a budget until its period ends')
    .description('Adds to a budget until its period ends. The runs that wait for it start, as far as it allows.')
    .argument('<name>', 'name of the budget')
    .option('--usd <dollars>', 'US dollars to add')
    .option('--tokens <n>', 'tokens to add')
    .option('--turns <n>', 'turns to add')
    .addOption(jsonOption())
    .examples('hookloom budget raise daily --usd 10')
    .run(async (context, name: string, options: RaiseOptions) =>
      (await import('../budget.ts')).raiseBudget(context, { name, ...options }),
    )
}

export function addStateCommands(program: CliCommand): void {
  const state = program
    .command('state')
    .summary('show what transforms remember')
    .description(
      'Lists what transforms have set with context.state: the modules, the values of one module, or one whole value.',
    )
    .argument('[module]', 'module, such as issue.ts')
    .argument('[key]', 'key of a value')
    .addOption(jsonOption())
    .examples('hookloom state', 'hookloom state issue.ts', 'hookloom state drop issue.ts issue:4711')
    .run(async (context, module: string | undefined, key: string | undefined) =>
      (await import('../state.ts')).state(context, { module, key }),
    )
  state
    .command('drop')
    .summary('delete values')
    .description('Deletes one value of a module, or all. Needs a running gateway.')
    .argument('<module>', 'module, such as issue.ts')
    .argument('[key]', 'key of a value; without it, all values of the module are deleted')
    .addOption(jsonOption())
    .examples('hookloom state drop issue.ts issue:4711', 'hookloom state drop issue.ts')
    .run(async (context, module: string, key: string | undefined) =>
      (await import('../state.ts')).dropModuleState(context, { module, key }),
    )
}
