// Values that the sections of several channels share, and texts.
export { cut, takeStart, toPrintable, toPrintableLine, toWellFormed } from '../../../base/text.ts'
export { apiUrl, endpointUrl, httpUrl, nonBlank, pathPart, senderId } from '../../../core/model/values.ts'
