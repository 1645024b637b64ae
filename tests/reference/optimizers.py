#!/usr/bin/env python3
"""Optimizers of PyTorch on tiny models and on given gradients, for tests/numerics.

  python optimizers.py        # rewrites optimizers.json beside this file

Courses: those of curves.py, each tensor with an optimizer of its own, so that what an event drops is an instance that goes. Decay is
decoupled everywhere and acts on matrices, embedding and head: torch.optim.SGD adds its own to the gradient, so it gets none and the
weight is multiplied beforehand. torch.optim.Muon works in bfloat16 inside; here it works in the type of the run. Lion is the update of
its paper (2302.06675, algorithm 2), in float64 as in float32.

Given gradients: three tensors, whose first values and gradients are sines of their places, under a rate that falls, without clipping; kept
are the values after 1, 8 and 24 updates.
"""
import json, math, pathlib
import torch
import curves
from curves import BETAS, ADAM_EPS

DECAY = curves.DECAY
torch.set_num_threads(1)


def decayed(value):
    return DECAY if value.dim() == 2 else 0.0


def by(make):
    """An update by an optimizer of torch, one instance a tensor."""
    def update(name, value, g, lr, state):
        if name not in state:
            state[name] = make(name, value)
        optimizer = state[name]
        for group in optimizer.param_groups:
            group["lr"] = lr
        value.grad = g.clone()
        # Muon's inner type, where torch has it written down.
        short, torch.bfloat16 = torch.bfloat16, value.dtype
        try:
            optimizer.step()
        finally:
            torch.bfloat16 = short
        value.grad = None
    return update


def sgd(momentum, nesterov):
    step = by(lambda name, value: torch.optim.SGD([value], lr=0.0, momentum=momentum, nesterov=nesterov))
    def update(name, value, g, lr, state):
        value.mul_(1 - lr * decayed(value))
        step(name, value, g, lr, state)
    return update


def lion(name, value, g, lr, state):
    m = state.get(name, torch.zeros_like(value))
    value.sub_(lr * (torch.sign(0.9 * m + 0.1 * g) + decayed(value) * value))
    state[name] = 0.99 * m + 0.01 * g


def muon(nesterov):
    def make(name, value):
        if name.startswith("layers.") and value.dim() == 2:
            return torch.optim.Muon([value], lr=0.0, weight_decay=DECAY, nesterov=nesterov, adjust_lr_fn="match_rms_adamw")
        return torch.optim.AdamW([value], lr=0.0, betas=BETAS, eps=ADAM_EPS, weight_decay=decayed(value))
    return by(make)


RULES = {
    "sgd": (0.03, sgd(0.0, False)),
    "momentum": (0.01, sgd(0.9, False)),
    "nesterov": (0.01, sgd(0.9, True)),
    "lion": (5e-4, lion),
    "muon": (1e-3, muon(True)),
    "muon_plain": (1e-3, muon(False)),
}


def courses(first, data):
    kept = {}
    for name, (peak, update) in RULES.items():
        scaled = lambda name, value, g, lr, state: update(name, value, g, lr * peak / curves.PEAK, state)
        runs = (curves.course(first, "pre", data, dtype, None, scaled) for dtype in (torch.float64, torch.float32))
        exact, rounded = runs
        apart = [max(abs(a - b) for a, b in zip(*both)) for both in zip(exact, rounded)]
        print(f"{name:12} loss {exact[0][0]:.5f} -> {exact[0][-1]:.5f}; float32 is off by {apart[0]:.1e}, its norms by {apart[1]:.1e}")
        kept[name] = {"loss": exact[0], "grad_norm": exact[1], "apart": apart}
    return kept


SHAPES = {"layers.0.ffn.up": (7, 3), "layers.0.ffn.down": (4, 6), "exit.norm": (5,)}


def given():
    kept = {}
    wave = lambda shape, a, b: torch.tensor([math.sin(a + b * at) for at in range(math.prod(shape))], dtype=torch.float64).view(shape)
    for rule, (peak, update) in RULES.items():
        w = {name: wave(shape, 0.5, 1.3) for name, shape in SHAPES.items()}
        state, after = {}, []
        for t in range(24):
            for name, value in w.items():
                update(name, value, wave(value.shape, 1.0 + 0.9 * t, 0.7), 10 * peak * (1 - t / 40), state)
            if t + 1 in (1, 8, 24):
                after.append({name: value.flatten().tolist() for name, value in w.items()})
        kept[rule] = after
    return kept


def main():
    here = pathlib.Path(__file__).parent
    first = curves.weights(2, "pre", False, curves.LAYERS)
    kept = {"courses": courses(first, curves.batches(1)), "given": given()}
    (here / "optimizers.json").write_text(json.dumps(kept) + "\n")


main()
