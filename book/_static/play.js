// Five figures to play with. Each computes in the page what the package
// computes, in the letters of its chapter; tests/browser.py compares the numbers.
// While the book is built, Node draws the still pictures with the same code.

// Vectors, matrices, kernels

const range = (n) => [...Array(n).keys()];
const grid = (a, b, n) => range(n).map((i) => a + ((b - a) * i) / (n - 1));
const sum = (a) => a.reduce((s, v) => s + v, 0);
const mean = (a) => sum(a) / a.length;
const dot = (a, b) => sum(a.map((v, i) => v * b[i]));
const times = (A, b) => A.map((row) => dot(row, b));
const product = (A, B) => A.map((row) => B[0].map((_, j) => sum(row.map((v, i) => v * B[i][j]))));
const plus = (A, c) => A.map((row, i) => row.map((v, j) => v + (i === j ? c : 0))); // A + cI
const square = (x, y) => (x.length ? sum(x.map((v, i) => (v - y[i]) ** 2)) : (x - y) ** 2);
const KERNELS = {
  Gaussian: (sigma) => (x, y) => Math.exp(-square(x, y) / (2 * sigma ** 2)),
  Laplace: (sigma) => (x, y) => Math.exp(-Math.sqrt(square(x, y)) / sigma),
};
const gram = (k, X, Y = X) => X.map((x) => Y.map((y) => k(x, y)));

// The solution of Ax = b: elimination with row exchanges.
function solve(A, b) {
  const n = b.length, M = A.map((row, i) => [...row, b[i]]);
  for (const j of range(n)) {
    let best = j;
    for (let i = j; i < n; i++) if (Math.abs(M[i][j]) > Math.abs(M[best][j])) best = i;
    [M[j], M[best]] = [M[best], M[j]];
    for (let i = j + 1; i < n; i++) {
      const c = M[i][j] / M[j][j];
      for (let m = j; m <= n; m++) M[i][m] -= c * M[j][m];
    }
  }
  const x = Array(n).fill(0);
  for (let i = n - 1; i >= 0; i--) x[i] = (M[i][n] - dot(M[i].slice(i + 1, n), x.slice(i + 1))) / M[i][i];
  return x;
}

// Numbers that look random and are the same on every machine.
function uniform(seed) {
  return () => (seed = (seed * 16807) % 2147483647) / 2147483647;
}
function normal(seed) {
  const u = uniform(seed);
  return () => Math.sqrt(-2 * Math.log(u())) * Math.cos(2 * Math.PI * u());
}

// Drawing: pictures are strings of SVG, 400 by 260.

const show = (v, digits = 3) => (Math.abs(v) < 1e-12 ? "0" : Number(v.toPrecision(digits)).toString().replace("-", "−"));
const WIDTH = 400, HEIGHT = 260;

class Axes {
  constructor([a, b], [c, d], box = [34, 10, 356, 212], labels = {}) {
    const [left, top, width, height] = box;
    Object.assign(this, { a, b, c, d, left, top, width, height, labels });
  }
  x(v) { return this.left + ((v - this.a) / (this.b - this.a)) * this.width; }
  y(v) { return this.top + ((this.d - v) / (this.d - this.c)) * this.height; }
  at(px, py) {
    return [this.a + ((px - this.left) / this.width) * (this.b - this.a),
            this.d - ((py - this.top) / this.height) * (this.d - this.c)];
  }
  path(T, values, kind) {
    const points = T.map((t, i) => `${this.x(t).toFixed(2)},${this.y(values[i]).toFixed(2)}`);
    return `<polyline class="${kind}" points="${points.join(" ")}"/>`;
  }
  band(T, low, high) {
    const there = T.map((t, i) => `${this.x(t).toFixed(2)},${this.y(low[i]).toFixed(2)}`);
    const back = T.map((t, i) => `${this.x(t).toFixed(2)},${this.y(high[i]).toFixed(2)}`).reverse();
    return `<polygon class="band" points="${[...there, ...back].join(" ")}"/>`;
  }
  dot(x, y, kind = "") {
    return `<circle class="dot ${kind}" cx="${this.x(x).toFixed(2)}" cy="${this.y(y).toFixed(2)}" r="4"/>`;
  }
  line(x, y, u, v, kind) {
    return `<line class="${kind}" x1="${this.x(x).toFixed(2)}" y1="${this.y(y).toFixed(2)}" x2="${this.x(u).toFixed(2)}" y2="${this.y(v).toFixed(2)}"/>`;
  }
  frame(xticks, yticks) {
    const bottom = this.top + this.height, { labels } = this;
    const lines = [...xticks.map((t) => this.line(t, this.c, t, this.d, "grid")), ...yticks.map((v) => this.line(this.a, v, this.b, v, "grid"))];
    const words = [
      ...xticks.map((t) => `<text x="${this.x(t)}" y="${bottom + 16}" text-anchor="middle">${labels.ticks?.[t] ?? show(t)}</text>`),
      ...yticks.map((v) => `<text x="${this.left - 5}" y="${this.y(v) + 4}" text-anchor="end">${show(v)}</text>`),
    ];
    if (labels.x) words.push(`<text x="${this.left + this.width / 2}" y="${bottom + 33}" text-anchor="middle">${labels.x}</text>`);
    return [...lines, ...words].join("");
  }
}

// The five figures. `numbers` is the mathematics, `picture` the drawing,
// `words` the sentence of results under it.

const FIGURES = {};
const T = grid(-3, 3, 241);

FIGURES.space = {
  title: "The space of a kernel",
  text: "Move the points, the width σ and the bound B. The curve s is the function of least norm through the points. A function f of the space with these values and ‖f‖ ≤ B lies in the band s ± P √(B² − ‖s‖²).",
  state: { kernel: "Gaussian", sigma: 0.8, B: 3, X: [-2.4, -1.3, -0.1, 1, 2.2], y: [0.6, -0.9, 0.4, 1.3, -0.5] },
  choices: { kernel: ["kernel", ["Gaussian", "Laplace"]] },
  sliders: { sigma: ["width σ", 0.2, 1.5, 0.01], B: ["bound B", 0.5, 8, 0.1] },
  points: [{ x: "X", y: "y", apart: 0.12 }],
  axes: () => new Axes([-3, 3], [-3, 3], undefined, { x: "t" }),
  numbers({ kernel, sigma, B, X, y }) {
    const k = KERNELS[kernel](sigma), K = gram(k, X);
    const alpha = solve(K, y);
    const norm = Math.sqrt(dot(alpha, y));                  // ‖s‖² = α'Kα = α'y
    const s = times(gram(k, T, X), alpha);
    const P = T.map((t) => {
      const kappa = X.map((x) => k(x, t));
      return Math.sqrt(Math.max(0, k(t, t) - dot(kappa, solve(K, kappa))));
    });
    const rest = B >= norm ? Math.sqrt(B ** 2 - norm ** 2) : NaN; // ‖f − s‖ at most
    return { alpha, norm, s, P, rest };
  },
  picture({ X, y }, { s, P, rest }, axes) {
    const clip = (v) => Math.max(-3, Math.min(3, v));
    const band = rest >= 0 ? axes.band(T, s.map((v, i) => clip(v - P[i] * rest)), s.map((v, i) => clip(v + P[i] * rest))) : "";
    return axes.frame([-3, -2, -1, 0, 1, 2, 3], [-2, 0, 2]) + band + axes.path(T, s.map(clip), "blue")
      + X.map((x, i) => axes.dot(x, y[i], "orange")).join("");
  },
  words: ({ B }, { norm, rest, P }) => `‖s‖ = ${show(norm)}. ` + (rest >= 0
    ? `The band is at most ±${show(Math.max(...P) * rest)} wide.` : `No function of norm at most ${show(B)} has these values.`),
};

FIGURES.ridge = {
  title: "Ridge regression",
  text: "Choose the penalty λ and the width σ; move points, or press into the picture to add one. The curve minimises Σ (yᵢ − f(xᵢ))² + λ ‖f‖².",
  state: (() => {
    const z = normal(11), X = grid(-2.8, 2.8, 16);
    return { lam: 0.5, sigma: 0.5, X, y: X.map((x) => Math.sin(x) + 0.5 * Math.cos(3 * x) + 0.4 * z()) };
  })(),
  sliders: { lam: ["penalty λ", 0.001, 100, "log"], sigma: ["width σ", 0.1, 3, "log"] },
  points: [{ x: "X", y: "y", add: true }],
  axes: () => new Axes([-3, 3], [-2.6, 2.6], undefined, { x: "x" }),
  numbers({ lam, sigma, X, y }) {
    const k = KERNELS.Gaussian(sigma), K = gram(k, X), n = X.length;
    const A = plus(K, lam), e = (i) => range(n).map((j) => Number(i === j));
    const alpha = solve(A, y);
    const G = range(n).map((i) => solve(A, e(i)));          // (K + λI)⁻¹
    const loo = alpha.map((a, i) => a / G[i][i]);           // errors at points left out
    const df = n - lam * sum(G.map((row, i) => row[i]));    // tr K (K + λI)⁻¹
    const norm = Math.sqrt(Math.max(0, dot(alpha, times(K, alpha))));
    return { alpha, f: times(gram(k, T, X), alpha), fit: times(K, alpha), loo, df, norm };
  },
  picture({ X, y }, { f, fit }, axes) {
    return axes.frame([-3, -2, -1, 0, 1, 2, 3], [-2, 0, 2]) + X.map((x, i) => axes.line(x, y[i], x, fit[i], "thin")).join("")
      + axes.path(T, f, "blue") + X.map((x, i) => axes.dot(x, y[i], "orange")).join("");
  },
  words: ({ y }, { df, norm, fit, loo }) => `Degrees of freedom ${show(df)}, ‖f‖ = ${show(norm)}. Mean squared error at the points ${show(mean(y.map((v, i) => (v - fit[i]) ** 2)))}, at points left out ${show(mean(loo.map((v) => v ** 2)))}.`,
};

FIGURES.witness = {
  title: "The witness of two samples",
  text: "Move the points of the two samples and the width σ. The witness w is high where the first sample (above) is denser, and low where the second (below) is.",
  state: { sigma: 0.5, X: [-2.3, -1.6, -1.2, -0.8, -0.3, 0.1, 0.6, 1.5], Y: [-1.4, -0.2, 0.5, 0.9, 1.2, 1.6, 2, 2.6] },
  sliders: { sigma: ["width σ", 0.1, 2, 0.01] },
  points: [{ x: "X", level: 0.85 }, { x: "Y", level: -0.85 }],
  axes: () => new Axes([-3, 3], [-1, 1], undefined, { x: "t" }),
  numbers({ sigma, X, Y }) {
    const k = KERNELS.Gaussian(sigma), m = X.length, n = Y.length;
    const xx = sum(gram(k, X).flat()), yy = sum(gram(k, Y).flat()), xy = sum(gram(k, X, Y).flat());
    const biased = xx / m ** 2 - (2 * xy) / (m * n) + yy / n ** 2;
    const unbiased = (xx - m) / (m * (m - 1)) - (2 * xy) / (m * n) + (yy - n) / (n * (n - 1)); // k(x, x) = 1
    const w = T.map((t) => mean(X.map((x) => k(x, t))) - mean(Y.map((y) => k(y, t))));
    return { biased, unbiased, w };
  },
  picture({ X, Y }, { w }, axes) {
    return axes.frame([-3, -2, -1, 0, 1, 2, 3], [-0.5, 0, 0.5]) + axes.line(-3, 0, 3, 0, "thin") + axes.path(T, w, "black")
      + X.map((x) => axes.dot(x, 0.85, "blue")).join("") + Y.map((y) => axes.dot(y, -0.85, "orange square")).join("");
  },
  words: (_, { biased, unbiased }) => `MMD² = ${show(biased)} (biased), ${show(unbiased)} (unbiased).`,
};

function cloud(name, n = 40) {
  const u = uniform(5), z = normal(7), turns = range(n).map(() => 2 * Math.PI * u());
  const X = { line: turns.map((t) => (t - Math.PI) / 2), ring: turns.map(Math.cos), nothing: turns.map(Math.cos) }[name];
  const Y = { line: X.map((x) => 0.7 * x + 0.5 * z()), ring: turns.map((t) => Math.sin(t) + 0.15 * z()), nothing: turns.map(() => 2 * u() - 1) }[name];
  return { X, Y };
}

FIGURES.shuffle = {
  title: "The permutation test by hand",
  text: "Shuffling tears the pairs apart: xᵢ meets y with the index π(i). The left picture shows the pairs, the right one all values of HSIC so far. The vertical line is T, the value of the true pairs.",
  state: { cloud: "ring", sigma: 0.4, ...cloud("ring"), orders: [] },
  choices: { cloud: ["pairs", ["ring", "line", "nothing"], (state) => Object.assign(state, cloud(state.cloud), { orders: [] })] },
  sliders: { sigma: ["width σ", 0.2, 2, 0.01] },
  buttons: {
    "Shuffle once": (state, random) => { state.orders.push(shuffled(state.X.length, random)); },
    "Shuffle 100 times": (state, random) => { for (const _ of range(100)) state.orders.push(shuffled(state.X.length, random)); },
    "Begin again": (state) => { state.orders = []; },
  },
  numbers({ sigma, X, Y, orders }) {
    const k = KERNELS.Gaussian(sigma), n = X.length;
    const K = centred(gram(k, X)), L = centred(gram(k, Y));
    const hsic = (pi) => sum(range(n).map((i) => sum(range(n).map((j) => K[i][j] * L[pi[i]][pi[j]])))) / n ** 2;
    const t = hsic(range(n)), null_ = orders.map(hsic), B = orders.length;
    const p = (1 + null_.filter((v) => v >= t * (1 - 1e-10)).length) / (1 + B);
    return { T: t, null: null_, p };
  },
  axes: () => new Axes([-2, 2], [-2, 2], [26, 30, 168, 190], { x: "x" }),
  picture({ X, Y, orders }, { T: t, null: values }, axes) {
    const pi = orders.at(-1) ?? range(X.length);
    const far = 1.1 * Math.max(t, 0.01, ...values), bins = Array(22).fill(0);
    for (const v of values) bins[Math.min(21, Math.floor((22 * v) / far))] += 1;
    const top = Math.max(4, ...bins), right = new Axes([0, far], [0, top], [226, 30, 166, 190], { x: "HSIC" });
    const bars = bins.map((c, i) => `<rect class="bar" x="${right.x((i * far) / 22)}" y="${right.y(c)}" width="${166 / 22 - 1}" height="${right.y(0) - right.y(c)}"/>`);
    const step = [0.1, 0.05, 0.02, 0.01, 0.005].find((one) => one < far / 1.5) ?? 0.002;
    return axes.frame([-1, 0, 1], [-1, 0, 1]) + X.map((x, i) => axes.dot(x, Y[pi[i]], orders.length ? "grey" : "orange")).join("")
      + right.frame(range(Math.ceil((0.9 * far) / step)).map((i) => i * step), [0, Math.round(top / 2), top]) + bars.join("") + right.line(t, 0, t, top, "orange")
      + `<text x="26" y="20">${orders.length ? "shuffled pairs" : "true pairs"}</text><text x="226" y="20">${values.length} shuffles</text>`;
  },
  words: (_, { T: t, null: values, p }) => `T = ${show(t)}. ` + (values.length
    ? `The last shuffle gave ${show(values.at(-1))}. p = (1 + ${values.filter((v) => v >= t * (1 - 1e-10)).length})/(1 + ${values.length}) = ${show(p)}.` : "No shuffle yet."),
};

function shuffled(n, random = Math.random) {
  const pi = range(n);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor((i + 1) * random());
    [pi[i], pi[j]] = [pi[j], pi[i]];
  }
  return pi;
}

function centred(K) { // HKH
  const rows = K.map(mean), all = mean(rows);
  return K.map((row, i) => row.map((v, j) => v - rows[i] - rows[j] + all));
}

const onWheel = (theta) => [Math.cos(theta), Math.sin(theta)];

FIGURES.filter = {
  title: "One step of the kernel Bayes filter",
  text: "A point runs around a wheel, by an angle of about 0.6 in a step. A sensor sees its first coordinate only, with an error. From a recording of 60 steps the filter has learnt both. Choose the two readings: the first fits two angles, and what fits the prediction decides after the second.",
  state: (() => {
    const z = normal(3), theta = [0];
    for (const i of range(60)) theta.push(theta[i] + 0.6 + 0.1 * z());
    const states = theta.map(onWheel);
    return { y0: 0.2, y1: -0.4, sigma: 0.4, lam: 1e-3, eps: 1e-4, states, observations: states.map(([x]) => x + 0.1 * z()) };
  })(),
  sliders: { y0: ["first reading", -1.2, 1.2, 0.01], y1: ["second reading", -1.2, 1.2, 0.01] },
  axes: () => new Axes([-Math.PI, Math.PI], [-0.35, 1.3], undefined,
    { x: "angle", ticks: { [-Math.PI]: "−π", [-Math.PI / 2]: "−π/2", [Math.PI / 2]: "π/2", [Math.PI]: "π" } }),
  numbers({ y0, y1, sigma, lam, eps, states, observations }) {
    const n = states.length - 1, k = KERNELS.Gaussian(sigma), l = KERNELS.Gaussian(sigma);
    const X = states.slice(0, n), next = states.slice(1), Y = observations.slice(0, n);
    const K = gram(k, X), L = gram(l, Y), at = (y) => Y.map((v) => l(v, y));
    const alpha = unitMass(solve(plus(L, n * lam), at(y0)));                    // the start
    const beta = solve(plus(K, n * lam), times(K, alpha));                      // prediction
    const w = unitMass(solve(plus(K, n * lam), times(gram(k, X, next), beta))); // prior weights
    const LW = L.map((row) => row.map((v, j) => v * w[j]));
    const r = solve(plus(product(LW, LW), eps), times(LW, at(y1)));
    const posterior = unitMass(r.map((v, i) => w[i] * v));                      // Λ((LΛ)² + εI)⁻¹LΛ l_Y(y)
    const wheel = grid(-Math.PI, Math.PI, 181).map(onWheel);
    const curve = (points, weights) => times(gram(k, wheel, points), weights);
    return { alpha, beta, w, posterior, now: curve(X, alpha), predicted: curve(next, unitMass(beta)), then: curve(X, posterior) };
  },
  picture({ y1 }, { now, predicted, then }, axes) {
    const wheel = grid(-Math.PI, Math.PI, 181), clip = (a) => a.map((v) => Math.max(-0.35, Math.min(1.3, v)));
    const fits = Math.abs(y1) <= 1 ? [Math.acos(y1), -Math.acos(y1)] : [];
    const key = (x, kind, word) => `<line class="${kind}" x1="${x}" y1="18" x2="${x + 22}" y2="18"/><text x="${x + 26}" y="22">${word}</text>`;
    return axes.frame([-Math.PI, -Math.PI / 2, 0, Math.PI / 2, Math.PI], [0, 0.5, 1]) + fits.map((t) => axes.line(t, -0.35, t, 1.1, "thin dotted")).join("")
      + axes.path(wheel, clip(now), "green dotted") + axes.path(wheel, clip(predicted), "orange dashed") + axes.path(wheel, clip(then), "blue")
      + key(40, "green dotted", "first reading") + key(170, "orange dashed", "prediction") + key(288, "blue", "posterior");
  },
  words(_, { then }) {
    const theta = grid(-Math.PI, Math.PI, 181)[then.indexOf(Math.max(...then))];
    return `The posterior embedding is largest at the angle ${show(theta, 2)}. The thin lines are the angles that fit the second reading.`;
  },
};

function unitMass(w) {
  const all = sum(w.map(Math.abs));
  return w.map((v) => v / (Math.max(sum(w), all / 10) || 1));
}

// A figure in a page

function svg(figure, state, numbers) {
  const axes = figure.axes(state);
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${figure.title}. ${figure.words(state, numbers)}">${figure.picture(state, numbers, axes)}</svg>`;
}

function still(name) {
  const figure = FIGURES[name], numbers = figure.numbers(figure.state);
  return `<figure class="play" id="play-${name}"><div class="picture">${svg(figure, figure.state, numbers)}</div>`
    + `<div class="controls"></div><p class="result">${figure.words(figure.state, numbers)}</p>`
    + `<figcaption><strong>${figure.title}.</strong> ${figure.text}</figcaption></figure>`;
}

function play(element) {
  const figure = FIGURES[element.id.replace("play-", "")], state = structuredClone(figure.state);
  const [picture, controls, result] = [".picture", ".controls", ".result"].map((s) => element.querySelector(s));
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  result.setAttribute("role", "status");

  function update() {
    const numbers = figure.numbers(state);
    picture.firstElementChild.outerHTML = svg(figure, state, numbers);
    result.textContent = figure.words(state, numbers);
    element.play = { state, numbers };
    placeHandles();
  }

  // A handle over each point that can be moved: by finger, mouse or arrow keys.
  const handles = [];
  function placeHandles() {
    const axes = figure.axes(state);
    const wanted = (figure.points ?? []).flatMap((part) => state[part.x].map((_, i) => [part, i]));
    while (handles.length > wanted.length) handles.pop().remove();
    wanted.forEach(([part, i], index) => {
      const handle = handles[index] ?? (handles[index] = picture.appendChild(newHandle()));
      handle.target = [part, i];
      const x = state[part.x][i], y = part.y ? state[part.y][i] : part.level;
      handle.style.left = `${(100 * axes.x(x)) / WIDTH}%`;
      handle.style.top = `${(100 * axes.y(y)) / HEIGHT}%`;
      handle.setAttribute("aria-label", `point ${i + 1} of ${part.x}: ${show(x)}${part.y ? `, ${show(y)}` : ""}`);
    });
  }
  function move([part, i], x, y) {
    const { a, b, c, d } = figure.axes(state), X = state[part.x];
    x = Math.max(a, Math.min(b, x));
    if (!part.apart || X.every((v, j) => j === i || Math.abs(v - x) >= part.apart)) X[i] = x;
    if (part.y) state[part.y][i] = Math.max(c, Math.min(d, y));
    update();
  }
  function place(event) {
    const box = picture.getBoundingClientRect();
    return figure.axes(state).at(((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.height) * HEIGHT);
  }
  function newHandle() {
    const handle = make("button", { type: "button", className: "handle" });
    handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
    handle.addEventListener("pointermove", (event) => handle.hasPointerCapture(event.pointerId) && move(handle.target, ...place(event)));
    handle.addEventListener("keydown", (event) => {
      const [part, i] = handle.target, steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (steps) {
        const size = event.shiftKey ? 0.01 : 0.1;
        move(handle.target, state[part.x][i] + size * steps[0], (part.y ? state[part.y][i] : 0) + size * steps[1]);
      } else if (part.add && event.key === "Delete" && state[part.x].length > 2) {
        for (const name of [part.x, part.y]) state[name].splice(i, 1);
        update();
      } else return;
      event.preventDefault();
    });
    return handle;
  }

  function add(part, x, y) {
    const { a, b, c, d } = figure.axes(state);
    if (x < a || x > b || y < c || y > d || state[part.x].length >= 60) return;
    state[part.x].push(x);
    state[part.y].push(y);
    update();
  }
  for (const part of (figure.points ?? []).filter((one) => one.add)) {
    picture.addEventListener("click", (event) => event.target.closest(".handle") || add(part, ...place(event)));
    controls.append(make("button", { type: "button", textContent: "Add a point", onclick: () => add(part, 0, 0) }));
    controls.append(make("button", { type: "button", textContent: "Remove the last", onclick: () => {
      if (state[part.x].length > 2) for (const name of [part.x, part.y]) state[name].pop();
      update();
    } }));
  }

  for (const [name, [word, low, high, step]] of Object.entries(figure.sliders ?? {})) {
    const log = step === "log", to = log ? Math.log10 : Number, from = log ? (v) => 10 ** v : Number;
    const label = make("label", { textContent: `${word} ` }), value = make("output");
    const slider = make("input", { type: "range", min: to(low), max: to(high), step: log ? 0.01 : step, value: to(state[name]), name });
    const say = () => { value.textContent = show(state[name]); slider.setAttribute("aria-valuetext", show(state[name])); };
    slider.addEventListener("input", () => { state[name] = from(slider.value); say(); update(); });
    say();
    label.append(slider, value);
    controls.append(label);
  }
  for (const [name, [word, options, chosen]] of Object.entries(figure.choices ?? {})) {
    const label = make("label", { textContent: `${word} ` }), select = make("select", { name });
    select.append(...options.map((text) => make("option", { textContent: text })));
    select.addEventListener("change", () => { state[name] = select.value; chosen?.(state); update(); });
    label.append(select);
    controls.prepend(label);
  }
  for (const [word, act] of Object.entries(figure.buttons ?? {}))
    controls.append(make("button", { type: "button", textContent: word, onclick: () => { act(state); update(); } }));
  update();
}

if (typeof document === "undefined") module.exports = { still, FIGURES };
else for (const element of document.querySelectorAll("figure.play")) play(element);
