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

export function armOf(plan, unit) {
  if (plan.holdout && position(plan.holdout_salt, unit) < plan.holdout) return plan.reference
  const at = position(plan.salt, unit)
  return plan.thresholds.findIndex(x => x > at)
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
      posts.push([{ plan: n, units: all.map(x => x.unit), arms: all.map(x => x.arm), rewards }, crypto.randomUUID()])
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

  // Keep what it returns with the unit, and show that arm when the unit comes again.
  const draw = async unit => {
    if (Date.now() > until) {
      // An old plan will do while the server cannot be reached.
      plan = await call("plan").catch(e => {
        if (e.cause < 429 || !plan) throw e
        return plan
      })
      until = Date.now() + 1e3 * plan.lasts
    }
    const arm = armOf(plan, unit), drawn = { unit, plan: plan.plan, arm, label: plan.labels[arm] }
    queue.push(drawn)
    if (++draws >= most) await flush()
    return drawn
  }

  // Posted with the next draws, so that it moves no exposure.
  const reward = (drawn, reward, metric = "reward") => { queue.push({ ...drawn, reward, metric }) }
  return { draw, reward, flush, refused }
}
