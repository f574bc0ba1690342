// The page of the admin port: exchanges the code of its link for a key, and shows what the admin API has.
import { render, type JSX } from 'preact'
import { useState } from 'preact/hooks'
import { onKeyExpired } from './api.ts'
import { App } from './app.tsx'
import { exchangeCode, readKey, takeCode } from './key.ts'

const code = takeCode()

function KeyNotice({ why }: { why: string }): JSX.Element {
  return (
    <main class="door">
      <h1>Hookloom</h1>
      {why !== '' && <p role="alert">{why}</p>}
      <p>
        Run <code>hookloom open</code> in a terminal. It opens this page with a new key, which is valid for twelve hours
        in this tab.
      </p>
    </main>
  )
}

function Page({ problem }: { problem: string }): JSX.Element {
  const [why, setWhy] = useState(readKey() === null ? problem : undefined)
  onKeyExpired(setWhy)
  return why === undefined ? <App /> : <KeyNotice why={why} />
}

async function start(): Promise<void> {
  let problem = ''
  if (code !== undefined) {
    problem = await exchangeCode(code).then(
      () => '',
      (error: unknown) => (error instanceof Error ? error.message : 'The gateway does not answer.'),
    )
  }
  const root = document.getElementById('page')
  if (root === null) return
  root.replaceChildren()
  render(<Page problem={problem} />, root)
}

void start()
