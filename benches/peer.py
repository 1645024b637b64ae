#!/usr/bin/env python3
"""The training step of `xrun bench` in PyTorch, and the file that gives both the same first values, tokens and teacher.

    python benches/peer.py --write start.safetensors --shape S --loss kd
    python benches/peer.py --start start.safetensors --shape S --loss kd --mode compile      # one line of JSON, as `xrun bench` prints
    xrun bench --start start.safetensors --shape S --loss kd

A step: labels are the next tokens; cross entropy is a mean over all positions, `kd` is 0.3 of it and 0.7 of KL(teacher || student), the
teacher's log-softmax taken in every step; gradients are clipped to a global norm of 1; AdamW (3e-4, 0.9, 0.95, 1e-8) decays every tensor
by 0.1; float32. Positions are rotated by halves, queries and keys are RMS-normalised per head, the head is the embedding. Needs torch,
safetensors and numpy.
"""
import argparse, json, math, os, resource, statistics, sys, time

SHAPES = {  # width, heads, key/value heads, hidden, vocabulary, context, batch
    "S": (128, 4, 2, 384, 512, 128, 16), "M": (256, 8, 4, 768, 4096, 256, 8), "L": (512, 8, 4, 1536, 16384, 256, 4)}
LAYERS, BATCHES, EPS = 9, 4, 1e-6

flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
flags.add_argument("--shape", choices=SHAPES, default="S")
flags.add_argument("--placement", choices=["pre", "post"], default="pre")
flags.add_argument("--loss", choices=["ce", "kd"], default="ce")
flags.add_argument("--frozen-layers", type=int, default=0)
flags.add_argument("--mode", choices=["eager", "compile"], default="eager")
flags.add_argument("--steps", type=int, default=9)
flags.add_argument("--warmup", type=int, default=2)
flags.add_argument("--threads", type=int, default=2)
flags.add_argument("--write", metavar="FILE")
flags.add_argument("--start", metavar="FILE")
a = flags.parse_args()
# glibc gives every large tensor pages of its own and takes them back: tell it not to, as a careful user would.
TUNED = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 34), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
if a.start and os.environ.get("PEER") != "1":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **TUNED, "PEER": "1", "OMP_NUM_THREADS": str(a.threads)})

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

D, H, G, HIDDEN, V, T, B = SHAPES[a.shape]
K, N = D // H, B * T


def shapes():
    """Names and sides of all parameters."""
    yield "embedding", (V, D)
    for layer in range(LAYERS):
        at = f"layers.{layer}."
        yield from ((at + "attention." + name, sides) for name, sides in
                    [("q", (H * K, D)), ("k", (G * K, D)), ("v", (G * K, D)), ("o", (D, H * K)), ("q_norm", (K,)), ("k_norm", (K,)), ("norm", (D,))])
        yield from ((at + "ffn." + name, sides) for name, sides in [("gate", (HIDDEN, D)), ("up", (HIDDEN, D)), ("down", (D, HIDDEN)), ("norm", (D,))])
    if a.placement == "pre":
        yield "exit.norm", (D,)


if a.write:
    torch.manual_seed(0)
    tensors = {name: torch.ones(sides) if len(sides) == 1 else 0.02 * torch.randn(sides) for name, sides in shapes()}
    for batch in range(BATCHES):
        tensors[f"tokens.{batch}"] = torch.randint(0, V, (B, T + 1)).float()
        if a.loss == "kd":
            tensors[f"teacher.{batch}"] = 2 * torch.randn(N, V)
    save_file(tensors, a.write)
    sys.exit()

torch.set_num_threads(a.threads)
given = load_file(a.start)
p = {name: given[name].clone().requires_grad_(True) for name, _ in shapes()}
frozen = tuple(f"layers.{layer}." for layer in range(a.frozen_layers))
for name, value in p.items():
    value.requires_grad_(not name.startswith(frozen) if frozen else True)
batches = [(given[f"tokens.{i}"].long(), given.get(f"teacher.{i}")) for i in range(BATCHES)]
angles = torch.outer(torch.arange(T, dtype=torch.float64), 10_000.0 ** (-torch.arange(0, K, 2, dtype=torch.float64) / K))
COS, SIN = angles.cos().float(), angles.sin().float()


def norm(x, weight):
    return F.rms_norm(x, weight.shape, weight, EPS)


def rotated(x):
    one, two = x.chunk(2, -1)
    return torch.cat([one * COS - two * SIN, two * COS + one * SIN], -1)


def attention(x, at):
    heads = lambda name, count: F.linear(x, p[at + name]).view(B, T, count, K).transpose(1, 2)
    q, k, v = rotated(norm(heads("q", H), p[at + "q_norm"])), rotated(norm(heads("k", G), p[at + "k_norm"])), heads("v", G)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return F.linear(y.transpose(1, 2).reshape(B, T, H * K), p[at + "o"])


def ffn(x, at):
    return F.linear(F.silu(F.linear(x, p[at + "gate"])) * F.linear(x, p[at + "up"]), p[at + "down"])


def layer(x, number):
    for f, at in ((attention, f"layers.{number}.attention."), (ffn, f"layers.{number}.ffn.")):
        x = x + f(norm(x, p[at + "norm"]), at) if a.placement == "pre" else norm(x + f(x, at), p[at + "norm"])
    return x


def loss_of(tokens, teacher):
    x = F.embedding(tokens[:, :-1], p["embedding"].detach() if a.frozen_layers else p["embedding"])
    with torch.no_grad():
        for number in range(a.frozen_layers):
            x = layer(x, number)
    for number in range(a.frozen_layers, LAYERS):
        x = layer(x, number)
    logits = F.linear(norm(x, p["exit.norm"]) if a.placement == "pre" else x, p["embedding"]).view(N, V)
    ce = F.cross_entropy(logits, tokens[:, 1:].reshape(N))
    if teacher is None:
        return ce
    return 0.3 * ce + 0.7 * F.kl_div(F.log_softmax(logits, -1), F.log_softmax(teacher, -1), log_target=True, reduction="batchmean")


if a.mode == "compile":
    loss_of = torch.compile(loss_of)
learning = [value for value in p.values() if value.requires_grad]
optimizer = torch.optim.AdamW(learning, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)
losses, times, cpu = [], [], []
for step in range(a.warmup + a.steps):
    tokens, teacher = batches[step % BATCHES]
    began, used = time.perf_counter(), time.process_time()
    optimizer.zero_grad(set_to_none=True)
    value = loss_of(tokens, teacher if a.loss == "kd" else None)
    value.backward()
    torch.nn.utils.clip_grad_norm_(learning, 1.0)
    optimizer.step()
    losses.append(value.item())
    times.append(time.perf_counter() - began)
    cpu.append(time.process_time() - used)
timed = times[a.warmup:]
median = statistics.median(timed)
print(json.dumps({
    "impl": "torch", "mode": a.mode, "shape": a.shape, "threads": a.threads, "steps": a.steps, "tokens_per_step": N,
    "params": sum(math.prod(sides) for _, sides in shapes()),
    "median_step_ms": round(1e3 * median, 3), "min_step_ms": round(1e3 * min(timed), 3), "tokens_per_s": round(N / median, 1),
    "loss_first": round(losses[0], 6), "loss_last": round(losses[-1], 6),
    "cpu_per_wall": round(sum(cpu[a.warmup:]) / sum(timed), 2),
    "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}))
