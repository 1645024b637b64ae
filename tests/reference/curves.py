#!/usr/bin/env python3
"""Reference loss curves of tiny models in PyTorch, for tests/numerics.

  python curves.py            # rewrites curves.json and curves.safetensors beside this file

Conventions: RMS norm x·rsqrt(mean x² + eps)·w; RoPE rotates halves, positions restart with each document; a token sees itself and those
before it in its document; loss = mean over counted tokens of the batch; kd = 0.3·CE + 0.7·τ²·KL(teacher ‖ student), τ = 2; clip by
min(1, clip/(norm + 1e-6)); AdamW with one step count a tensor and decoupled decay on matrices, embedding and head only.

Courses: sixty steps from two layers, through every event that touches depth, optimizer or rate (COURSE). An event at step N acts after N
steps. What grows starts without moments; what freezes loses its own, and below a frozen prefix the embedding and the entry norm rest
and keep theirs (a tied embedding learns from the head's side). The rate warms up over three steps, then falls by a cosine to a tenth at
the next restart or at the end. They are run in float32 and in float64: kept are those of float64, and how far float32 is from them.
"""
import json, math, pathlib
import torch, torch.nn.functional as F
from safetensors.torch import save_file

torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
WIDTH, HEADS, KEYS, HEAD, FFN, VOCABULARY, LAYERS, BLOCK = 16, 4, 2, 4, 24, 31, 4, 2
ROWS, CONTEXT, STEPS, EPS, BASE = 4, 12, 20, 1e-6, 10_000.0
# A larger rate makes float32 and float64 part by more than the tolerance of the test.
LR, BETAS, ADAM_EPS, DECAY, CLIP, TAU = 3e-3, (0.9, 0.95), 1e-8, 0.1, 0.5, 2.0


def weights(seed, placement, gelu, layers):
    random = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=random) * 0.3
    near_one = lambda n: 1 + 0.1 * torch.randn(n, generator=random)
    w = {"embedding": draw(VOCABULARY, WIDTH) * 3, "head": draw(VOCABULARY, WIDTH)}
    for i in range(layers):
        a, f = f"layers.{i}.attention", f"layers.{i}.ffn"
        w |= {f"{a}.q": draw(HEADS * HEAD, WIDTH), f"{a}.k": draw(KEYS * HEAD, WIDTH), f"{a}.v": draw(KEYS * HEAD, WIDTH)}
        w |= {f"{a}.o": draw(WIDTH, HEADS * HEAD), f"{a}.q_norm": near_one(HEAD), f"{a}.k_norm": near_one(HEAD)}
        w |= {f"{f}.up": draw(FFN, WIDTH), f"{f}.down": draw(WIDTH, FFN)}
        if not gelu:
            w[f"{f}.gate"] = draw(FFN, WIDTH)
        for part in (a, f):
            for norm in ("norm", "norm2") if placement == "sandwich" else ("norm",):
                w[f"{part}.{norm}"] = near_one(WIDTH)
                if gelu:
                    w[f"{part}.{norm}.bias"] = 0.1 * torch.randn(WIDTH, generator=random)
    end = "entry.norm" if placement == "post" else "exit.norm"
    w[end] = near_one(WIDTH)
    if gelu:
        w[end + ".bias"] = 0.1 * torch.randn(WIDTH, generator=random)
    return w


def rms(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight


class Net:
    def __init__(self, w, placement, gelu, layers):
        self.w, self.placement, self.gelu, self.layers = w, placement, gelu, layers

    def norm(self, name, x):
        if not self.gelu:
            return rms(x, self.w[name])
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + EPS)
        return centred * scale * self.w[name] + self.w[name + ".bias"]

    def head_norm(self, name, x):
        if self.gelu:
            x = x - x.mean(-1, keepdim=True)
        return rms(x, self.w[name])

    def attention(self, i, x, batch):
        w, p = self.w, f"layers.{i}.attention"
        b, t, _ = x.shape
        q = self.head_norm(f"{p}.q_norm", (x @ w[f"{p}.q"].T).view(b, t, HEADS, HEAD))
        k = self.head_norm(f"{p}.k_norm", (x @ w[f"{p}.k"].T).view(b, t, KEYS, HEAD))
        v = (x @ w[f"{p}.v"].T).view(b, t, KEYS, HEAD)
        half = HEAD // 2
        frequency = BASE ** (-2 * torch.arange(half).double() / HEAD)
        angle = (batch["position"][..., None].double() * frequency)[:, :, None, :]
        cos, sin = (torch.cat([z.to(x.dtype)] * 2, -1) for z in (angle.cos(), angle.sin()))
        turn = lambda z: z * cos + torch.cat([-z[..., half:], z[..., :half]], -1) * sin
        q, k = turn(q), turn(k)
        k, v = (z.repeat_interleave(HEADS // KEYS, 2) for z in (k, v))
        scores = torch.einsum("bqhk,bshk->bhqs", q, k) / math.sqrt(HEAD)
        at = torch.arange(t)
        sees = (at[:, None] >= at[None]) & (batch["document"][:, :, None] == batch["document"][:, None, :])
        scores = scores.masked_fill(~sees[:, None], -math.inf)
        out = torch.einsum("bhqs,bshk->bqhk", scores.softmax(-1), v).reshape(b, t, HEADS * HEAD)
        return out @ w[f"{p}.o"].T

    def ffn(self, i, x):
        w, p = self.w, f"layers.{i}.ffn"
        up = x @ w[f"{p}.up"].T
        hidden = F.gelu(up, approximate="tanh") if self.gelu else F.silu(x @ w[f"{p}.gate"].T) * up
        return hidden @ w[f"{p}.down"].T

    def logits(self, batch, frozen=0):
        x = self.w["embedding"][batch["inputs"]]
        if self.placement == "post":
            x = self.norm("entry.norm", x)
        for i in range(self.layers):
            if i == frozen and frozen:
                x = x.detach()
            for part, f in (("attention", lambda z: self.attention(i, z, batch)), ("ffn", lambda z: self.ffn(i, z))):
                n = f"layers.{i}.{part}.norm"
                if self.placement == "pre":
                    x = x + f(self.norm(n, x))
                elif self.placement == "post":
                    x = self.norm(n, x + f(x))
                else:
                    x = x + self.norm(n + "2", f(self.norm(n, x)))
        if self.placement != "post":
            x = self.norm("exit.norm", x)
        return x @ self.w["head" if "head" in self.w else "embedding"].T


def batches(seed):
    random = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(5):
        tokens = torch.randint(0, VOCABULARY, (ROWS, CONTEXT + 1), generator=random)
        document, position, counted = (torch.zeros(ROWS, CONTEXT, dtype=torch.long) for _ in range(3))
        counted += 1
        for row in range(ROWS):
            cut = int(torch.randint(1, CONTEXT, (1,), generator=random))
            document[row, cut:] = 1
            position[row] = torch.cat([torch.arange(cut), torch.arange(CONTEXT - cut)])
        counted[ROWS - 1, CONTEXT - 3:] = 0
        out.append({"inputs": tokens[:, :-1], "labels": tokens[:, 1:], "document": document, "position": position, "counted": counted})
    return out


def train(w, placement, data, gelu=False, layers=LAYERS, teacher=None, grow_at=None):
    """grow_at: the upper half of the layers joins after so many steps, and the lower half freezes."""
    depth = layers // 2 if grow_at else layers
    w = {name: value.clone().requires_grad_() for name, value in w.items()}
    state, losses = {}, []
    for step in range(STEPS):
        if step == grow_at:
            depth = layers
        frozen = layers // 2 if grow_at and step >= grow_at else 0
        batch = data[step % len(data)]
        z = Net(w, placement, gelu, depth).logits(batch, frozen)
        counted = batch["counted"].float()
        mean = lambda each: (each * counted).sum() / counted.sum()
        ce = mean(-z.log_softmax(-1).gather(-1, batch["labels"][..., None]).squeeze(-1))
        loss = ce
        if teacher is not None:
            with torch.no_grad():
                p = (Net(teacher, "pre", False, LAYERS).logits(batch) / TAU).log_softmax(-1)
            loss = 0.3 * ce + 0.7 * TAU * TAU * mean((p.exp() * (p - (z / TAU).log_softmax(-1))).sum(-1))
        losses.append(loss.item())
        for value in w.values():
            value.grad = None
        loss.backward()
        learning = {name: value for name, value in w.items() if value.grad is not None}
        norm = math.sqrt(sum(value.grad.double().pow(2).sum().item() for value in learning.values()))
        scale = min(1.0, CLIP / (norm + 1e-6))
        with torch.no_grad():
            for name, value in learning.items():
                m, v, t = state.get(name, (torch.zeros_like(value), torch.zeros_like(value), 0))
                g, t = value.grad * scale, t + 1
                m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
                if value.dim() == 2:
                    value.mul_(1 - LR * DECAY)
                value.sub_(LR / (1 - BETAS[0] ** t) * m / (v.sqrt() / math.sqrt(1 - BETAS[1] ** t) + ADAM_EPS))
                state[name] = (m, v, t)
    return losses


COURSE = {
    15: ["grow"],
    25: ["freeze"],
    35: ["thaw", "restart"],
    45: ["freeze", "reset", "restart"],
    52: ["thaw"],
}
LENGTH, WARMUP, FLOOR = 60, 3, 0.1
# At three times as much, post-norm doubles what rounding does every few steps.
PEAK = 1e-3


def rate(step):
    restarts = [0] + [at for at, events in COURSE.items() if "restart" in events] + [LENGTH]
    last = max(at for at in restarts if at <= step)
    span, since = min(at for at in restarts if at > step) - last, step - last
    if since < WARMUP:
        return PEAK * (since + 1) / WARMUP
    x = (since - WARMUP) / (span - WARMUP)
    return PEAK * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * x)) / 2)


def adamw(name, value, g, lr, state):
    """One update of a tensor in place; `state` holds what is kept of it, by name."""
    m, v, t = state.get(name, (torch.zeros_like(value), torch.zeros_like(value), 0))
    t = t + 1
    m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
    if value.dim() == 2:
        value.mul_(1 - lr * DECAY)
    value.sub_(lr / (1 - BETAS[0] ** t) * m / (v.sqrt() / math.sqrt(1 - BETAS[1] ** t) + ADAM_EPS))
    state[name] = (m, v, t)


def course(w, placement, data, dtype, teacher=None, update=adamw):
    """Losses and norms of gradients under COURSE."""
    cast = lambda tensors: {name: value.to(dtype) for name, value in tensors.items()}
    w = {name: value.clone().requires_grad_() for name, value in cast(w).items()}
    teacher = None if teacher is None else cast(teacher)
    depth, frozen, state, losses, norms = LAYERS // 2, 0, {}, [], []
    for step in range(LENGTH):
        for event in COURSE.get(step, []):
            if event == "grow":
                depth = LAYERS
            elif event == "freeze":
                frozen = LAYERS // 2
                state = {name: kept for name, kept in state.items() if not name.startswith(tuple(f"layers.{i}." for i in range(frozen)))}
            elif event == "thaw":
                frozen = 0
            elif event == "reset":
                state = {}
        batch = data[step % len(data)]
        z = Net(w, placement, False, depth).logits(batch, frozen)
        counted = batch["counted"].to(dtype)
        mean = lambda each: (each * counted).sum() / counted.sum()
        loss = mean(-z.log_softmax(-1).gather(-1, batch["labels"][..., None]).squeeze(-1))
        if teacher is not None:
            with torch.no_grad():
                p = (Net(teacher, "pre", False, LAYERS).logits(batch) / TAU).log_softmax(-1)
            loss = 0.3 * loss + 0.7 * TAU * TAU * mean((p.exp() * (p - (z / TAU).log_softmax(-1))).sum(-1))
        found = torch.autograd.grad(loss, list(w.values()), allow_unused=True)
        found = {name: value for name, value in zip(w, found) if value is not None}
        norm = math.sqrt(sum(value.double().pow(2).sum().item() for value in found.values()))
        losses.append(loss.item())
        norms.append(norm)
        scale = min(1.0, CLIP / (norm + 1e-6))
        with torch.no_grad():
            for name, value in found.items():
                update(name, w[name], value * scale, rate(step), state)
    return losses, norms


def courses(first, teacher, data):
    tied = {name: value for name, value in first["pre"].items() if name != "head"}
    kept = {}
    for name, w, placement, taught in [
        ("pre_ce", first["pre"], "pre", None),
        ("post_ce", first["post"], "post", None),
        ("pre_kd", first["pre"], "pre", teacher),
        ("post_kd", first["post"], "post", teacher),
        ("pre_tied_ce", tied, "pre", None),
    ]:
        exact, rounded = (course(w, placement, data, dtype, taught) for dtype in (torch.float64, torch.float32))
        apart = [max(abs(a - b) for a, b in zip(*both)) for both in zip(exact, rounded)]
        print(f"{name:12} loss {exact[0][0]:.5f} -> {exact[0][-1]:.5f}; float32 is off by {apart[0]:.1e}, its norms by {apart[1]:.1e}")
        kept[name] = {"loss": exact[0], "grad_norm": exact[1], "apart": apart}
    return kept


def main():
    here, data = pathlib.Path(__file__).parent, batches(1)
    first = {"pre": weights(2, "pre", False, LAYERS), "post": weights(3, "post", False, LAYERS)}
    first["sandwich"] = weights(4, "sandwich", True, LAYERS // 2)
    teacher = weights(5, "pre", False, LAYERS)
    curves = {
        "pre_ce": train(first["pre"], "pre", data),
        "post_ce": train(first["post"], "post", data),
        "post_kd": train(first["post"], "post", data, teacher=teacher),
        "sandwich_ce": train(first["sandwich"], "sandwich", data, gelu=True, layers=LAYERS // 2),
        "pre_grow_freeze": train(first["pre"], "pre", data, grow_at=10),
    }
    tensors = {f"{who}/{name}": value for who, w in (first | {"teacher": teacher}).items() for name, value in w.items()}
    save_file(tensors, here / "curves.safetensors")
    flat = [{name: value.flatten().tolist() for name, value in batch.items()} for batch in data]
    kept = {"batches": flat, "curves": curves, "courses": courses(first, teacher, data)}
    (here / "curves.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    main()
