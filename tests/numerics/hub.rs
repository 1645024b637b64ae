//! Models and tokenizers of Hugging Face's format against transformers; `tests/reference/hub.py` writes the folders and the numbers.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use xrun::budget::hub::{compare, names};
use xrun::budget::params::whole;
use xrun::data::Batch;
use xrun::data::hub::{Hub, Tensors};
use xrun::data::tokenize::Encoder;
use xrun::model::{Network, Params, Without};
use xrun::study::Tokenizer;
use xrun::tensor::{Composed, Cpu, Fused, Operations};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/hub").join(name)
}

/// Tokens as they stand, one document a row.
fn batch(ids: &[f32], rows: usize) -> Batch {
    let context = ids.len() / rows;
    Batch {
        rows,
        context,
        sequences: (0..rows as u64).collect(),
        inputs: ids.iter().map(|id| *id as u32).collect(),
        labels: vec![0; ids.len()],
        counted: vec![true; ids.len()],
        document: vec![0; ids.len()],
        position: (0..ids.len()).map(|at| (at % context) as u32).collect(),
        structural: vec![false; ids.len()],
    }
}

/// The largest difference, relative to the largest value.
fn apart(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    let size = theirs.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    ours.iter().zip(theirs).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / size
}

fn agrees<O: Operations<f32, Cpu>>(name: &str) {
    let hub = Hub::open(&folder(name), name).expect("a model");
    let shapes: Vec<_> = hub.tensors.shapes().map(|(name, shape)| (name.to_owned(), shape.to_vec())).collect();
    assert_eq!(compare(&hub.model, &shapes), Ok(()), "{name}");
    let expected = Tensors::of_file(&folder(name).join("expected.safetensors"));
    // Its tokens are whole numbers, which no weights are.
    assert!(expected.expect_err("refused").to_string().contains("`ids` is of type I32"));
    let bytes = std::fs::read(folder(name).join("expected.safetensors")).expect("reads");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("a file");
    let numbers = |name: &str| -> Vec<f32> {
        let view = file.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let word = |word: &[u8]| [word[0], word[1], word[2], word[3]];
        let words = view.data().chunks_exact(4).map(word);
        match view.dtype() {
            safetensors::Dtype::I32 => words.map(|word| i32::from_le_bytes(word) as f32).collect(),
            _ => words.map(f32::from_le_bytes).collect(),
        }
    };
    let (stack, ends) = whole(&hub.model);
    let specs = xrun::budget::params::parameters(&hub.model, &stack, &ends);
    let value = |spec: &xrun::budget::params::ParamSpec| {
        names(&spec.name).iter().find_map(|name| hub.tensors.values(name)).expect("a tensor").expect("reads").1
    };
    let device = Cpu::default();
    let params: Params<f32, Cpu> = Params::from_values(&device, &specs, value).expect("parameters");
    let network: Network<'_, f32, Cpu, O> = Network::new(&hub.model, &stack, &ends, &params, 0);
    let batch = batch(&numbers("ids"), 2);
    let rows = network.rows(&device, &batch).expect("rows");
    let mut seen = Vec::new();
    let logits = network.logits(&rows, Without::Nothing, |block, x| seen.push((block, x.as_vec()))).expect("logits");
    for (layer, ours) in seen {
        let apart = apart(&ours, &numbers(&format!("hidden.{layer}")));
        assert!(apart < 1e-4, "{name}, after layer {layer}: {apart:e}");
    }
    let apart = apart(&logits.as_vec(), &numbers("logits"));
    assert!(apart < 1e-4, "{name}: {apart:e}");
}

#[test]
fn logits_and_hidden_states_are_those_of_transformers() {
    for name in ["qwen3", "qwen3_tied_bf16", "llama_sharded_f16", "llama_legacy"] {
        agrees::<Fused>(name);
        agrees::<Composed>(name);
    }
}

#[test]
fn tokens_are_those_of_transformers() {
    #[derive(Deserialize)]
    struct Text {
        text: String,
        tokens: Vec<u32>,
    }
    let json = std::fs::read(folder("qwen3").join("tokens.json")).expect("reads");
    let texts: Vec<Text> = serde_json::from_slice(&json).expect("texts");
    let encoder = Encoder::open(&Tokenizer::File("tokenizer.json".into()), &folder("qwen3"), None).expect("a tokenizer");
    assert_eq!((encoder.vocabulary(), encoder.boundary()), (300, 0));
    let documents: Vec<String> = texts.iter().map(|text| text.text.clone()).collect();
    let found = encoder.encode(&documents).expect("encodes");
    for (text, found) in texts.into_iter().zip(found) {
        assert_eq!(found, text.tokens, "{}", text.text);
    }
}

#[test]
fn a_hash_of_weights_does_not_depend_on_files() {
    let from = folder("llama_sharded_f16");
    let hub = Hub::open(&from, "m").expect("a model");
    let to = tempfile::tempdir().expect("a folder");
    let bytes: Vec<_> = (1..=3)
        .map(|shard| std::fs::read(from.join(format!("model-0000{shard}-of-00003.safetensors"))).expect("reads"))
        .collect();
    let files: Vec<_> = bytes.iter().map(|bytes| safetensors::SafeTensors::deserialize(bytes).expect("a file")).collect();
    let views = files.iter().flat_map(|file| file.iter());
    let whole = safetensors::serialize(views, None).expect("serialises");
    std::fs::copy(from.join("config.json"), to.path().join("config.json")).expect("copies");
    std::fs::write(to.path().join("model.safetensors"), &whole).expect("writes");
    let one = Hub::open(to.path(), "m").expect("a model");
    assert_eq!(one.tensors.content().expect("reads"), hub.tensors.content().expect("reads"));
    let mut other = whole;
    *other.last_mut().expect("bytes") ^= 1;
    std::fs::write(to.path().join("model.safetensors"), other).expect("writes");
    assert_ne!(
        Hub::open(to.path(), "m").expect("a model").tensors.content().expect("reads"),
        hub.tensors.content().expect("reads")
    );
}
