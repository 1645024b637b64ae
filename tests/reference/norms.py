#!/usr/bin/env python3
"""Losses and gradients of tiny models under `norm dyt` and `norm none` in PyTorch, for tests/numerics.

  python norms.py             # rewrites norms.json beside this file

The networks, the batch and the conventions are those of curves.py. Dynamic Tanh (2503.10622): weight · tanh(alpha · x) + bias; norms of
heads have no bias. Element k of the p-th parameter by name is base + size · sin(0.37 (k + 1)² + p), rounded to float32. Of a gradient g
are kept its norm and Σ gₖ cos(k + 1). All in float64.
"""
import json, pathlib
import torch
import curves
from curves import FFN, HEAD, HEADS, KEYS, VOCABULARY, WIDTH, Net

LAYERS = 2


class Dyt(Net):
    def norm(self, name, x):
        return torch.tanh(self.w[name + ".alpha"] * x) * self.w[name] + self.w[name + ".bias"]

    def head_norm(self, name, x):
        return torch.tanh(self.w[name + ".alpha"] * x) * self.w[name]


class Nothing(Net):
    def norm(self, name, x):
        return x

    head_norm = norm


def shapes(placement, bends):
    s = {"embedding": (VOCABULARY, WIDTH), "head": (VOCABULARY, WIDTH)}
    norms = []
    for i in range(LAYERS):
        a, f = f"layers.{i}.attention", f"layers.{i}.ffn"
        s |= {f"{a}.q": (HEADS * HEAD, WIDTH), f"{a}.k": (KEYS * HEAD, WIDTH), f"{a}.v": (KEYS * HEAD, WIDTH)}
        s |= {f"{a}.o": (WIDTH, HEADS * HEAD), f"{f}.gate": (FFN, WIDTH), f"{f}.up": (FFN, WIDTH), f"{f}.down": (WIDTH, FFN)}
        if bends:
            for short in ("q_norm", "k_norm"):
                s |= {f"{a}.{short}": (HEAD,), f"{a}.{short}.alpha": (1,)}
        norms += [f"{part}.{norm}" for part in (a, f) for norm in (("norm", "norm2") if placement == "sandwich" else ("norm",))]
    norms.append("entry.norm" if placement == "post" else "exit.norm")
    for name in norms if bends else ():
        s |= {name: (WIDTH,), f"{name}.bias": (WIDTH,), f"{name}.alpha": (1,)}
    return s


def weights(shapes):
    w = {}
    for p, name in enumerate(sorted(shapes)):
        shape = shapes[name]
        base, size = (0.0, 0.3) if len(shape) == 2 else (0.0, 0.1) if name.endswith(".bias") else (0.5, 0.1) if name.endswith(".alpha") else (1.0, 0.1)
        k = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float64)
        w[name] = (base + size * torch.sin(0.37 * k * k + p)).float().double().reshape(shape).requires_grad_()
    return w


def seen(net, placement, bends, batch):
    w = weights(shapes(placement, bends))
    z = net(w, placement, False, LAYERS).logits(batch)
    each = -z.log_softmax(-1).gather(-1, batch["labels"][..., None]).squeeze(-1)
    loss = (each * batch["counted"]).sum() / batch["counted"].sum()
    loss.backward()
    along = lambda g: (g * torch.cos(torch.arange(1, g.numel() + 1, dtype=torch.float64))).sum().item()
    slopes = {name: [value.grad.norm().item(), along(value.grad.flatten())] for name, value in sorted(w.items())}
    return {"loss": loss.item(), "slopes": slopes}


def main():
    here = pathlib.Path(__file__).parent
    cells = json.loads((here / "curves.json").read_text())["batches"][0]
    batch = {name: torch.tensor(values).reshape(curves.ROWS, curves.CONTEXT) for name, values in cells.items()}
    cases = [("dyt", Dyt, "pre"), ("dyt", Dyt, "post"), ("dyt", Dyt, "sandwich"), ("none", Nothing, "pre")]
    kept = {f"{kind}_{placement}": seen(net, placement, kind == "dyt", batch) for kind, net, placement in cases}
    (here / "norms.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    main()
