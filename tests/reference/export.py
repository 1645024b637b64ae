"""Whether `transformers` computes what xrun trained: trains, exports, loads, compares.

    python tests/reference/export.py target/debug/xrun

needs torch, transformers and numpy. Students with and without QK-norm, with a head of their own and a tied one, are trained for a few steps; each is exported,
loaded with `AutoModelForCausalLM`, and compared on the held-out documents in two ways: its mean cross entropy with that of the run's own report, and its
log-probabilities with those that xrun writes down (a cache of all logits) with the exported folder as a teacher. A student of another placement
has to come without a `config.json` and with a note. Exits with 1 where anything differs by more than 1e-4.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

CONTEXT = 48
STUDY = """
use std.placements (pre, post)
use std.schedules (joint)
study s {
  data tales
  model student
  training base
  schedule joint(steps: 60)
  seeds 1
  measure validation_ce every 60 steps
}
data tales {
  generate  tales(documents: 200, seed: 1)
  context   CONTEXT tokens, padded
  holdout   5%
}
model student {
  layers 3
  width  32
  heads  4, kv 2, dim 12
  ffn    swiglu(48)
  norm   rms(eps: 1e-5)
  placement pre
  positions rope(base: 500)
  init   normal(0.1)
}
training base {
  loss      cross_entropy
  optimizer adamw(lr: 1e-2)
  batch     8 sequences
}
"""
NEXT = """
use std.placements (pre)
use std.schedules (joint)
study next {
  data tales
  model student
  training base with { loss kl(theirs) }
  schedule joint(steps: 1)
  seeds 1
}
teacher theirs { checkpoint "out", cache all }
"""


def main(xrun):
    xrun = pathlib.Path(xrun).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        call = lambda *words: subprocess.run([xrun, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
        study = STUDY.replace("CONTEXT", str(CONTEXT))
        worst = 0.0
        for qk in (True, False):
            for tied in (True, False):
                more = ("  qk_norm\n" if qk else "") + ("  embedding tied\n  head tied\n" if tied else "")
                text = study.replace("  placement pre\n", "  placement pre\n" + more)
                worst = max(worst, compare(folder, call, text, "qwen3" if qk else "llama", tied))
        (folder / "post.exp").write_text(text.replace("placement pre\n", "placement post\n"))
        call("run", "--quiet", "post.exp")
        arm = json.loads(call("report", "post.exp", "--format", "json"))["arms"][0]["name"]
        call("export", "post.exp", arm, "--to", "post")
        assert not (folder / "post/config.json").exists()
        names = load_file(folder / "post/model.safetensors").keys()
        note = (folder / "post/README.md").read_text()
        assert "layers.2.ffn.down" in names and "norm(x + ffn(x))" in note, note
        print(f"post-norm: {len(names)} tensors under xrun's names, and a note")
        print(f"largest difference {worst:.1e}")
        return worst > 1e-4


def compare(folder, call, text, kind, tied):
    out = folder / "out"
    if out.exists():
        for file in out.iterdir():
            file.unlink()
        out.rmdir()
    (folder / "s.exp").write_text(text)
    call("run", "--quiet", "s.exp")
    report = json.loads(call("report", "s.exp", "--format", "json"))["arms"][0]
    call("export", "s.exp", report["name"], "--to", "out")
    config = json.loads((out / "config.json").read_text())
    assert (config["model_type"], config["tie_word_embeddings"]) == (kind, tied), config
    model, said = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32, output_loading_info=True)
    assert not any(said[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), said
    shared = text[text.index("data tales"):]
    (folder / "next.exp").write_text(NEXT + shared)
    store = folder / f"store_{kind}_{tied}"
    call("run", "--quiet", "--store", store, "next.exp")
    header, = store.glob("nodes/*/logits.json")
    corpus, = store.glob("nodes/*/corpus.json")
    vocabulary = json.loads(header.read_text())["vocabulary"]
    ours = numpy.fromfile(header.with_name("holdout.logits"), "<f4").reshape(-1, CONTEXT, vocabulary)
    tokens = numpy.fromfile(corpus.with_name("holdout.tokens"), "<u2").astype(numpy.int64)
    ends = numpy.cumsum(numpy.fromfile(corpus.with_name("holdout.documents"), "<u4"))
    difference, loss, count = 0.0, 0.0, 0
    for row, (start, end) in enumerate(zip([0, *ends[:-1]], ends)):
        ids = torch.tensor(tokens[start:min(end, start + CONTEXT + 1)])
        with torch.no_grad():
            theirs = torch.log_softmax(model(ids[None, :-1]).logits[0], -1)
        loss -= theirs.gather(-1, ids[1:, None]).sum().item()
        count += len(ids) - 1
        difference = max(difference, (theirs - torch.tensor(ours[row, :len(theirs)])).abs().max().item())
    reported = report["series"]["validation_ce"][-1][1]
    print(f"{config['architectures'][0]}{', tied' if tied else ''}: {count} tokens, log-probabilities differ by at most {difference:.1e}; "
          f"validation_ce {reported:.6f}, here {loss / count:.6f}")
    return max(difference, abs(loss / count - reported))


sys.exit(main(sys.argv[1]))
