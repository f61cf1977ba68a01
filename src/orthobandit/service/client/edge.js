// Draws arms as the server would, and posts what it drew. Token and salts are secrets: not for visitors.
// The server sends this without comments and indentation.
const IV = new Uint32Array([
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19])
// Of each half of a step of BLAKE2b: the word of the message, and the four words that it mixes.
const STEPS = [..."0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0"]
  .map((c, k) => [2 * parseInt(c, 16), ...[0, 1, 2, 3].map(i => 8 * i + 2 * (i * (k >> 3 & 1) + (k >> 1) & 3))])

// One block of BLAKE2b; 64-bit words are pairs of 32 bits, the lower first.
function mix(h, m, count, last) {
  const v = new Uint32Array([...h, ...IV])
  v[24] ^= count
  v[28] ^= -last
  v[29] ^= -last
  const add = (a, low, high) => {
    v[a + 1] += high + (v[a] + low >= 2 ** 32)
    v[a] += low
  }
  // v[a] becomes v[a] ^ v[b], turned right by n bits.
  const turn = (a, b, n) => {
    let x = v[a] ^ v[b], y = v[a + 1] ^ v[b + 1]
    if (n > 31) [x, y] = [y, x]
    v[a] = n & 31 ? x >>> n | y << -n : x
    v[a + 1] = n & 31 ? y >>> n | x << -n : y
  }
  for (let k = 0; k < 192; k++) {
    const [w, a, b, c, d] = STEPS[k % 160]
    add(a, v[b], v[b + 1])
    add(a, m[w], m[w + 1])
    turn(d, a, k & 1 ? 16 : 32)
    add(c, v[d], v[d + 1])
    turn(b, c, k & 1 ? 63 : 24)
  }
  h.forEach((x, i) => h[i] = x ^ v[i] ^ v[i + 16])
}

// Where a unit lies in [0, 1).
function position(salt, unit) {
  const name = new TextEncoder().encode("=" + unit), end = 128 + name.length
  const bytes = new Uint8Array(end + 127 & ~127), h = IV.slice()
  bytes.set(salt.match(/../g).map(x => parseInt(x, 16)))
  bytes.set(name, 128)
  h[0] ^= 0x1011008
  for (let i = 0; i < end; i += 128)
    mix(h, new Uint32Array(bytes.buffer, i, 32), Math.min(i + 128, end), i + 128 >= end)
  const w = new DataView(h.buffer)
  return w.getUint32(0) / 2 ** 32 + (w.getUint32(4) >>> 11) / 2 ** 53
}

// What a personalised plan gives to the arms on offer. The server has the same numbers to the last bit, as
// long as the order of + - * / and sqrt is its own: see policy/contextual/handed_plan.py and direct_into.
export function sharesOf(rule, context) {
  const z = [1, ...rule.columns.map(name => context?.[name])], n = rule.arms.length, { theta, inverse: m, radius: r } = rule
  if (!z.every(Number.isFinite)) throw Error("context must have numbers " + rule.columns)
  const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0), p = Array(n).fill(0)
  const x = rule.features.map(f => f.flatMap((v, j) => z.map((u, c) => v * u * rule.scale[j * z.length + c])))
  const score = x.map(row => dot(row, theta)), best = score.indexOf(Math.max(...score))
  const y = x.map((row, a) => row.map((v, k) => a == best ? 0 : v - x[best][k]))
  const most = Math.max(...theta.map((_, k) => m.reduce((sum, row) => sum + Math.abs(row[k]), 0)))
  // Four rows at a time, as the server does.
  const times = v => v.map((_, k) => {
    let out = 0, j = 0
    for (; j + 4 <= v.length; j += 4) out += m[j][k] * v[j] + m[j + 1][k] * v[j + 1] + (m[j + 2][k] * v[j + 2] + m[j + 3][k] * v[j + 3])
    for (; j < v.length; j++) out += m[j][k] * v[j]
    return out
  })
  const pull = [], far = [], loss = Array(n).fill(0), square = []
  let lost = 0, over = 1 / 0, under = 1, first = best, second = best
  for (const all of [0, 1]) {
    y.forEach((row, a) => {
      const behind = score[best] - score[a]
      if (pull[a] || !all && r * r * most * dot(row, row) < behind * behind) return
      pull[a] = times(row)
      far[a] = Math.max(dot(pull[a], row), 0)
      if (far[a] > 0) lost = Math.max(lost, r * Math.sqrt(far[a]) - behind)
    })
    if (lost <= 0) break
  }
  p[best] = 1
  if (lost > 0) {
    for (let a = 0; a < n; a++) {
      square[a] = y.slice(0, a).map((row, b) => row.reduce((sum, v, k) => sum - 2 * pull[a][k] * v, far[a] + far[b]))
      square[a].forEach((s, b) => {
        const width = r * Math.sqrt(s), gap = score[a] - score[b]
        if (s > 0) {
          loss[a] = Math.max(loss[a], width - gap)
          loss[b] = Math.max(loss[b], width + gap)
        }
      })
    }
    square.forEach((row, a) => row.forEach((s, b) => {
      if (s > 0 && loss[a] * loss[b] * under < over * s) [over, under, first, second] = [loss[a] * loss[b], s, a, b]
    }))
    p[best] = 0
    p[first] = loss[second] / (loss[first] + loss[second])
    p[second] = loss[first] / (loss[first] + loss[second])
  }
  return p.map(share => (1 - rule.explore) * share + rule.explore / n)
}

export function armOf(plan, unit, context) {
  const rule = plan.personal, shares = rule && sharesOf(rule, context)
  if (plan.holdout && position(plan.holdout_salt, unit) < plan.holdout) return plan.reference
  const at = position(plan.salt, unit)
  let sum = 0
  return rule ? rule.arms.find((_, k) => (sum += shares[k]) > at) ?? rule.arms.at(-1) : plan.thresholds.findIndex(x => x > at)
}

// An experiment to draw from; `most` draws are posted together.
export function edge(address, token, key, most = 1000) {
  let plan, until = 0, draws = 0, queue = []
  const posts = [], refused = [], call = async (path, body, id) => {
    const answer = await fetch(`${address}/v1/experiments/${key}/${path}`, {
      method: body ? "POST" : "GET",
      body,
      headers: { Authorization: "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": id }
    })
    if (answer.ok) return answer.json()
    throw Error(await answer.text(), { cause: answer.status })
  }

  // For a timer. A post keeps its key until it is answered, so that none counts twice.
  const flush = async () => {
    for (const n of new Set(queue.map(x => x.plan))) {
      const all = queue.filter(x => x.plan == n), rewards = {}
      for (const { metric } of all) if (metric) rewards[metric] ??= all.map(x => x.metric == metric ? x.reward : null)
      const context = all[0].context && all.map(x => x.context)
      posts.push([{ plan: n, units: all.map(x => x.unit), arms: all.map(x => x.arm), rewards, context }, crypto.randomUUID()])
    }
    queue = []
    draws = 0
    while (posts[0]) {
      const post = posts.shift(), answer = await call("exposures", JSON.stringify(post[0]), post[1]).catch(e => {
        if (!(e.cause < 429)) posts.unshift(post)
        throw e
      })
      refused.push(...answer.refused.map(x => ({ ...x, unit: post[0].units[x.index] })))
    }
  }

  // Keep what it returns with the unit, and show that arm when the unit comes again. `context` is for
  // personalised experiments.
  const draw = async (unit, context) => {
    if (Date.now() > until) {
      // An old plan will do while the server cannot be reached.
      plan = await call("plan").catch(e => {
        if (e.cause < 429 || !plan) throw e
        return plan
      })
      until = Date.now() + 1e3 * plan.lasts
    }
    const arm = armOf(plan, unit, context), drawn = { unit, plan: plan.plan, arm, label: plan.labels[arm], context: plan.personal ? context : void 0 }
    queue.push(drawn)
    if (++draws >= most) await flush()
    return drawn
  }

  // Posted with the next draws, so that it moves no exposure.
  const reward = (drawn, reward, metric = "reward") => { queue.push({ ...drawn, reward, metric }) }
  return { draw, reward, flush, refused }
}
