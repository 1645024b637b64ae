"""Small models and a tokenizer as `transformers` writes them, and what it makes of a few tokens.

    python tests/reference/hub.py tests/reference/hub

needs torch, transformers, tokenizers and safetensors; the figures of the project came from torch 2.15, transformers 5.24. Each folder is what
`save_pretrained` writes. `expected.safetensors` of a folder: `ids` (2, 12), `logits` (2, 12, V), `hidden.0` the embeddings, `hidden.i` the stream
after layer i, before the last norm, all computed in float32 from the weights as they are stored. `tokens.json`: texts and their tokens.
"""
import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

ALPHABET = pre_tokenizers.ByteLevel.alphabet()
VOCABULARY = 300
TEXTS = [
    "The brass key\nIt was raining at the mill. Ada had the brass key.",
    "Grüße an 北京 — 3.14159 and 2,718\t\n\n   done",
    "a text that spells <|endoftext|> out",
    "",
]


def tokenizer(folder):
    words = [f"{who} gave the {what} to {whom}. {whom} went to the {where}." for who in ("Ada", "Bela", "Cora")
             for whom in ("Dario", "Edda") for what in ("brass key", "old map", "green lamp") for where in ("mill", "harbour")]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(words, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|endoftext|>"], initial_alphabet=ALPHABET, show_progress=False))
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>")
    fast.save_pretrained(folder)
    split = [fast(text, split_special_tokens=True, add_special_tokens=False)["input_ids"] for text in TEXTS]
    (folder / "tokens.json").write_text(json.dumps([{"text": t, "tokens": i} for t, i in zip(TEXTS, split)], ensure_ascii=False, indent=1))


def drawn(model, seed):
    """Weights of order one logits; norms that are not all ones."""
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=source)
            parameter.copy_(1 + 0.2 * noise if parameter.dim() == 1 else 0.15 * noise)
    return model.eval()


def expected(model, folder):
    ids = torch.randint(0, VOCABULARY, (2, 12), generator=torch.Generator().manual_seed(5))
    seen = {}
    keep = lambda name: lambda _, __, out: seen.__setitem__(name, (out[0] if isinstance(out, tuple) else out).detach().clone())
    model.model.embed_tokens.register_forward_hook(keep("hidden.0"))
    for number, layer in enumerate(model.model.layers):
        layer.register_forward_hook(keep(f"hidden.{number + 1}"))
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    save_file({"ids": ids.to(torch.int32), "logits": logits, **seen}, folder / "expected.safetensors")


def sizes(**more):
    return dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                max_position_embeddings=64, rms_norm_eps=1e-6, eos_token_id=0, attn_implementation="eager") | more


def write(out, name, model, dtype, **how):
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model = model.to(dtype)
    model.save_pretrained(folder, **how)
    (folder / "generation_config.json").unlink(missing_ok=True)
    # Read anew: casting a model rounds the tables of its rotations too, which nobody stores.
    expected(type(model).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager"), folder)
    return folder


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    # Heads whose width is not width / heads; norms of queries and keys; a head of its own.
    qwen = Qwen3ForCausalLM(Qwen3Config(**sizes(head_dim=16, rope_parameters={"rope_type": "default", "rope_theta": 1e6}, tie_word_embeddings=False)))
    tokenizer(write(out, "qwen3", drawn(qwen, 1), torch.float32))
    tied = Qwen3ForCausalLM(Qwen3Config(**sizes(head_dim=8, rope_parameters={"rope_type": "default", "rope_theta": 1e4}, tie_word_embeddings=True)))
    write(out, "qwen3_tied_bf16", drawn(tied, 2), torch.bfloat16)
    llama = LlamaForCausalLM(LlamaConfig(**sizes(tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 5e3})))
    write(out, "llama_sharded_f16", drawn(llama, 3), torch.float16, max_shard_size="30KB")
    # As older versions wrote it: the base of the rotations at the top, their tables among the weights.
    folder = write(out, "llama_legacy", drawn(LlamaForCausalLM(LlamaConfig(**sizes(num_key_value_heads=4, tie_word_embeddings=True))), 4), torch.float32)
    config = json.loads((folder / "config.json").read_text())
    for newer in ("rope_parameters", "dtype", "head_dim"):
        config.pop(newer, None)
    (folder / "config.json").write_text(json.dumps(config | {"rope_theta": 10000.0, "rope_scaling": None, "torch_dtype": "float32"}, indent=2))
    weights = load_file(folder / "model.safetensors")
    for layer in range(2):
        weights[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = 1e4 ** -(torch.arange(0, 8, 2) / 8)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
