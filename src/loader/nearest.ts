export { nearestOf } from '../model/nearest.ts'
