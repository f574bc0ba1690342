// The bundled presets. To add one: copy a folder, name it here.
import gmail from './gmail/preset.ts'

export const presets = [gmail] as const
