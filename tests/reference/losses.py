#!/usr/bin/env python3
"""Losses against a teacher in PyTorch, with their gradients, for tests/numerics.

  python losses.py            # rewrites losses.json beside this file

Logits are x headᵀ of a student and of a teacher; each loss is Σ weight · term over the tokens, in float64. With log-probabilities p of
the teacher and q of the student at temperature τ: kl and reverse_kl by torch.nn.functional.kl_div, jsd by the formula of 2306.13649
with the mixture as a log-sum-exp, each without a factor τ²; mse is torch.nn.functional.mse_loss of the logits of a token. Of a truncated
teacher the K likeliest tokens remain and the rest is one more outcome.
"""
import json, math, pathlib
import torch, torch.nn.functional as F

TOKENS, WIDTH, TEACHER_WIDTH, VOCABULARY, TOP = 4, 3, 5, 11, 3


def outcomes(logs, kept):
    """Log-probabilities of the kept tokens and of all others together."""
    if kept is None:
        return logs
    mask = torch.zeros_like(logs).scatter(-1, kept, -math.inf)
    return torch.cat([logs.gather(-1, kept), torch.logsumexp(logs + mask, -1, keepdim=True)], -1)


def term(kind, z, t, tau, beta, top):
    if kind == "mse":
        return F.mse_loss(z, t, reduction="none").mean(-1)
    log_p, log_q = (t / tau).log_softmax(-1), (z / tau).log_softmax(-1)
    kept = log_p.topk(TOP, -1).indices if top else None
    log_p, log_q = outcomes(log_p, kept), outcomes(log_q, kept)
    kl = lambda a, b: F.kl_div(b, a, reduction="none", log_target=True).sum(-1)
    if kind == "kl":
        return kl(log_p, log_q)
    if kind == "reverse_kl":
        return kl(log_q, log_p)
    log_m = torch.logsumexp(torch.stack([log_p + math.log(beta), log_q + math.log(1 - beta)]), 0)
    return beta * kl(log_p, log_m) + (1 - beta) * kl(log_q, log_m)


def main():
    random = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.randn(*shape, generator=random).double()
    x, head, its_x, its_head = draw(TOKENS, WIDTH), draw(VOCABULARY, WIDTH), draw(TOKENS, TEACHER_WIDTH), draw(VOCABULARY, TEACHER_WIDTH)
    weights = torch.tensor([0.4, 0.0, 0.35, 0.25], dtype=torch.float64)
    t, cases = its_x @ its_head.T, []
    for kind, beta in [("kl", None), ("reverse_kl", None), ("jsd", 0.1), ("jsd", 0.5), ("jsd", 0.9), ("mse", None)]:
        for tau in [1.0] if kind == "mse" else [1.0, 2.0]:
            for top in [False] if kind == "mse" else [False, True]:
                ours = [value.clone().requires_grad_() for value in (x, head)]
                loss = (weights * term(kind, ours[0] @ ours[1].T, t, tau, beta, top)).sum()
                dx, dhead = (value.flatten().tolist() for value in torch.autograd.grad(loss, ours))
                cases.append({"kind": kind, "beta": beta, "tau": tau, "top": top, "loss": loss.item(), "dx": dx, "dhead": dhead})
    flat = lambda value: value.flatten().tolist()
    out = {"x": flat(x), "head": flat(head), "teacher_x": flat(its_x), "teacher_head": flat(its_head), "weights": flat(weights), "top": TOP}
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out | {"cases": cases}) + "\n")


main()
