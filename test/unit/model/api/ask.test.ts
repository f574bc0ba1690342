import { expect, test } from 'vitest'
import { toRequest } from '../../../../src/model/api/ask.ts'

test('the parameter of a path is encoded, so it cannot lead to another call', () => {
  const { method, target } = toRequest('POST /api/deliveries/{id}/retry', { params: { id: '../x?y=1' } })
  expect([method, target]).toEqual(['POST', '/api/deliveries/..%2Fx%3Fy%3D1/retry'])
})

test('a query parameter without a value is left out, and a blank one is not', () => {
  const query = { hook: '', after: undefined, limit: 5 }
  expect(toRequest('GET /api/deliveries', { query })).toEqual({
    method: 'GET',
    target: '/api/deliveries?hook=&limit=5',
  })
})
