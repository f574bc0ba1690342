// Recognises tokens in any text by their form.

/** Each form starts at the beginning of a word and reads at most three words, so a search takes linear time. */
const forms: readonly string[] = [
  // GitHub, GitLab, npm, PyPI, RubyGems, Docker Hub
  'gh[opsur]_[A-Za-z\\d]{30,}',
  'github_pat_\\w{20,}',
  'gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[\\w-]{20,}',
  'npm_[A-Za-z\\d]{30,}',
  'pypi-[\\w-]{50,}',
  'rubygems_[a-f\\d]{40,}',
  'dckr_(?:pat|oat)_[\\w-]{20,}',
  // Slack, Telegram, Discord
  'xox[a-z](?:\\.xox[a-z])?-[\\w-]{10,}',
  'xapp-\\d-[\\w-]{10,}',
  '\\d{6,12}:[A-Za-z\\d_-]{35}(?![\\w-])',
  '[MNO][\\w-]{23,28}\\.[\\w-]{6}\\.[\\w-]{27,}',
  // Stripe and Standard Webhooks, Square, Shopify
  '(?:sk|rk)_(?:live|test)_[A-Za-z\\d]{10,}',
  'whsec_[A-Za-z\\d+/]{16,}={0,2}',
  'sq0[a-z]{3}-[\\w-]{22,}',
  'shp(?:at|ca|pa|ss|tka)_[a-fA-F\\d]{32,}',
  // Amazon, Google, Azure, DigitalOcean
  '(?:AKIA|ASIA)[A-Z\\d]{16}(?![A-Za-z\\d])',
  'AIza[\\w-]{35}',
  'ya29\\.[\\w-]{20,}',
  'GOCSPX-[\\w-]{20,}',
  'AccountKey=[A-Za-z\\d+/]{40,}={0,2}',
  'do[opr]_v1_[a-f\\d]{64}',
  // SendGrid, Mailgun, Brevo, Twilio
  'SG\\.[\\w-]{16,}\\.[\\w-]{30,}',
  'key-[a-f\\d]{32}(?![A-Za-z\\d])',
  'xkeysib-[a-f\\d]{40,}[\\w-]*',
  'SK[a-f\\d]{32}(?![A-Za-z\\d])',
  // OpenAI, Anthropic, Hugging Face, Groq, Replicate
  'sk-(?=[\\w-]*\\d)[\\w-]{20,}',
  'hf_[A-Za-z]{30,}',
  'gsk_[A-Za-z\\d]{40,}',
  'r8_[A-Za-z\\d]{30,}',
  // Atlassian, Linear, Notion, Sentry, Vault, age
  'ATATT3[\\w=-]{20,}',
  'lin_(?:api|oauth|wh)_[A-Za-z\\d]{20,}',
  'ntn_[A-Za-z\\d]{30,}',
  'sntry[su]_[\\w+/=-]{20,}',
  'hv[sbr]\\.[\\w-]{20,}',
  'AGE-SECRET-KEY-1[A-Z\\d]{20,}',
  // a JSON Web Token
  'eyJ[\\w-]{10,}\\.[\\w-]{10,}\\.[\\w-]*',
]

const token = new RegExp(`(?<![\\w-])(?:${forms.join('|')})`, 'g')
/** A word of sixteen characters or more, with a digit, after the name of an authentication scheme. */
const credential = /(?<![\w-])(Bearer|Basic|Token)( {1,4})(?=[A-Za-z._~+/=-]*\d)[\w.~+/=-]{16,}/gi
/** A private key up to its end line, or to the end of the text. */
const privateKey = /-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----[^]*?(?:-----END [A-Z\d ]{0,60}-----|$)/g

/** Replaces each token with the mark. */
export function replaceTokens(text: string, mark: string): string {
  return text.replace(privateKey, mark).replace(credential, `$1$2${mark}`).replace(token, mark)
}
