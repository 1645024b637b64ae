//! `config.json` to an architecture and back: Llama and Qwen3, which are pre-norm, RMSNorm, RoPE that rotates halves, SwiGLU, no biases.
//!
//! Whatever would change the arithmetic and cannot be said in a [`Model`] is refused by its field. Source: `configuration_llama.py` and
//! `configuration_qwen3.py` of transformers 5.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::study::equation::{Branches, Equation, Stream, Sublayer};
use crate::study::placement::{Body, Wiring};
use crate::study::{Embedding, Ffn, Init, Model, Norm, NormKind, Placement, Positions, Vocabulary};

/// Larger sides are a slip or a trap: the widest models have a width of 2^15 and vocabularies of 2^18.
const LARGEST: u64 = 1 << 24;

/// The deepest models have about a hundred layers.
const MOST_LAYERS: usize = 1 << 12;

/// The architecture, and the longest text that it was made for.
pub(super) fn read(text: &[u8], name: &str) -> Result<(Model, Option<usize>), String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
    let config = Config(&value);
    let kind = value["model_type"].as_str().ok_or("it has no `model_type`")?;
    let qk_norm = match kind {
        "llama" => false,
        "qwen3" => true,
        "qwen2" => {
            return Err("`model_type` qwen2: its queries, keys and values have biases, which models of xrun have not".to_owned());
        }
        other => return Err(format!("`model_type` {other} cannot be read: llama and qwen3 can")),
    };
    config.is("hidden_act", &["silu"])?;
    config.off("attention_bias")?;
    config.off("mlp_bias")?;
    config.off("use_sliding_window")?;
    config.off("quantization_config")?;
    config.one("partial_rotary_factor")?;
    config.one("pretraining_tp")?;
    let (width, heads) = (config.size("hidden_size")?, config.size("num_attention_heads")?);
    let layers = config.size("num_hidden_layers")?;
    if layers > MOST_LAYERS {
        return Err(format!("`num_hidden_layers` is {layers}, expected at most {MOST_LAYERS}"));
    }
    let kv_heads = config.optional_size("num_key_value_heads")?.unwrap_or(heads);
    let head_dim = match config.optional_size("head_dim")? {
        Some(dim) => dim,
        // What transformers takes where a Qwen3 does not say.
        None if kind == "qwen3" => 128,
        None if width % heads == 0 => width / heads,
        None => return Err(format!("`hidden_size` {width} is not divisible into `num_attention_heads` {heads}")),
    };
    if heads % kv_heads != 0 {
        return Err(format!("`num_key_value_heads` {kv_heads} does not divide `num_attention_heads` {heads}"));
    }
    if head_dim % 2 != 0 {
        return Err(format!("heads of {head_dim} channels: an even number is needed to rotate them"));
    }
    if let Some(kinds) = value["layer_types"].as_array()
        && let Some(other) = kinds.iter().find(|kind| *kind != "full_attention")
    {
        return Err(format!("`layer_types` has {other}: every layer must attend to all tokens"));
    }
    let tied = match &value["tie_word_embeddings"] {
        Value::Null => false,
        Value::Bool(tied) => *tied,
        other => return Err(format!("`tie_word_embeddings` is {other}, expected true or false")),
    };
    let table = if tied { Embedding::Tied } else { Embedding::Own };
    let model = Model {
        name: name.to_owned(),
        doc: None,
        layers,
        block: 1,
        width,
        heads,
        kv_heads,
        head_dim,
        ffn: Ffn::SwiGlu { width: config.size("intermediate_size")? },
        norm: Norm { kind: NormKind::Rms, eps: config.positive("rms_norm_eps", Some(1e-6))? },
        qk_norm,
        wiring: Wiring::uniform(Arc::new(pre()), layers),
        positions: Positions::Rope { base: config.rope()? },
        embedding: table,
        head: table,
        // Never drawn: every value comes from the folder.
        init: Init::Normal { std: 0.0 },
        vocabulary: Vocabulary::Size(config.size("vocab_size")?),
    };
    Ok((model, config.optional_size("max_position_embeddings")?))
}

/// What `read` reads as this model, of so many layers, if its wiring is theirs; `None` where nothing of the kind exists: another norm,
/// feed-forward network or way to tell positions. `context`: tokens of the longest text that it was trained on; `end`: the token that ends a text.
pub fn write(model: &Model, layers: usize, context: usize, end: u32) -> Option<Value> {
    let (NormKind::Rms, Ffn::SwiGlu { width: hidden }) = (model.norm.kind, model.ffn) else { return None };
    let Positions::Rope { base } = model.positions else { return None };
    let Vocabulary::Size(vocabulary) = model.vocabulary else { return None };
    let (class, kind) = if model.qk_norm { ("Qwen3ForCausalLM", "qwen3") } else { ("LlamaForCausalLM", "llama") };
    Some(json!({
        "architectures": [class],
        "model_type": kind,
        "hidden_size": model.width,
        "intermediate_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": model.norm.eps,
        // Versions before 5 read the first, later ones the second.
        "rope_theta": base,
        "rope_parameters": {"rope_type": "default", "rope_theta": base},
        "max_position_embeddings": context,
        "attention_bias": false,
        "attention_dropout": 0.0,
        "mlp_bias": false,
        "tie_word_embeddings": model.embedding == Embedding::Tied || model.head == Embedding::Tied,
        "vocab_size": vocabulary,
        // A text begins with its first token: nothing stands for its beginning.
        "bos_token_id": null,
        "eos_token_id": end,
        "dtype": "float32",
        "torch_dtype": "float32",
    }))
}

/// `sublayer x + f(norm(x)), exit norm(x)`: what both families are wired by.
fn pre() -> Placement {
    let norm = |input| Stream::Norm { slot: 0, input: Box::new(input) };
    let equation = |result| Equation { bindings: Vec::new(), result };
    let branch = |sublayer| {
        let f = Stream::Sublayer { sublayer, input: Box::new(norm(Stream::X)) };
        Branches::always(equation(Stream::Add(Box::new(Stream::X), Box::new(f))))
    };
    Placement {
        name: "pre".to_owned(),
        doc: None,
        entry: None,
        body: Body::Sublayers { attention: branch(Sublayer::Attention { qkv_norm: false }), ffn: branch(Sublayer::Ffn) },
        boundary: None,
        exit: Some(equation(norm(Stream::X))),
        init: Vec::new(),
    }
}

struct Config<'a>(&'a Value);

impl Config<'_> {
    fn size(&self, field: &str) -> Result<usize, String> {
        self.optional_size(field)?.ok_or_else(|| format!("it has no `{field}`"))
    }

    fn optional_size(&self, field: &str) -> Result<Option<usize>, String> {
        match &self.0[field] {
            Value::Null => Ok(None),
            value => match value.as_u64().filter(|size| (1..=LARGEST).contains(size)) {
                Some(size) => Ok(Some(size as usize)),
                None => Err(format!("`{field}` is {value}, expected a whole number from 1 to {LARGEST}")),
            },
        }
    }

    fn positive(&self, field: &str, otherwise: Option<f64>) -> Result<f64, String> {
        positive(field, &self.0[field])?.or(otherwise).ok_or_else(|| format!("it has no `{field}`"))
    }

    /// The base of the rotations. Newer files have it among `rope_parameters`, older ones beside a `rope_scaling`.
    fn rope(&self) -> Result<f64, String> {
        for field in ["rope_scaling", "rope_parameters"] {
            let scaling = &self.0[field];
            for kind in ["rope_type", "type"] {
                if let Some(kind) = scaling[kind].as_str().filter(|kind| *kind != "default") {
                    return Err(format!("`{field}` is of type {kind}: positions that are scaled cannot be computed"));
                }
            }
        }
        if let Some(base) = positive("rope_theta", &self.0["rope_parameters"]["rope_theta"])? {
            return Ok(base);
        }
        self.positive("rope_theta", Some(10_000.0))
    }

    fn is(&self, field: &str, known: &[&str]) -> Result<(), String> {
        match &self.0[field] {
            Value::Null => Ok(()),
            value if value.as_str().is_some_and(|word| known.contains(&word)) => Ok(()),
            value => Err(format!("`{field}` is {value}, expected {}", known.join(" or "))),
        }
    }

    fn off(&self, field: &str) -> Result<(), String> {
        match &self.0[field] {
            Value::Null | Value::Bool(false) => Ok(()),
            value => Err(format!("`{field}` is {value}, which models of xrun have not")),
        }
    }

    fn one(&self, field: &str) -> Result<(), String> {
        match &self.0[field] {
            Value::Null => Ok(()),
            value if value.as_f64() == Some(1.0) => Ok(()),
            value => Err(format!("`{field}` is {value}, which models of xrun have not")),
        }
    }
}

fn positive(field: &str, value: &Value) -> Result<Option<f64>, String> {
    match value {
        Value::Null => Ok(None),
        value => match value.as_f64().filter(|number| number.is_finite() && *number > 0.0) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("`{field}` is {value}, expected a number above 0")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LLAMA: &str = r#"{"model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 100, "rope_theta": 5000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}"#;

    fn changed(field: &str, to: &str) -> Result<Model, String> {
        let mut value: Value = serde_json::from_str(LLAMA).expect("JSON");
        value[field] = serde_json::from_str(to).expect("JSON");
        read(value.to_string().as_bytes(), "m").map(|(model, _)| model)
    }

    #[test]
    fn what_a_file_says_is_what_the_model_is() {
        let (model, context) = read(LLAMA.as_bytes(), "m").expect("a model");
        assert_eq!((model.width, model.heads, model.kv_heads, model.head_dim, model.layers), (32, 4, 2, 8, 2));
        assert_eq!((model.positions, model.norm.eps, context), (Positions::Rope { base: 5000.0 }, 1e-5, None));
        assert_eq!((model.embedding, model.head, model.qk_norm), (Embedding::Tied, Embedding::Tied, false));
        let newer = changed("rope_parameters", r#"{"rope_type": "default", "rope_theta": 7.5}"#).expect("a model");
        assert_eq!(newer.positions, Positions::Rope { base: 7.5 });
        let qwen = changed("model_type", "\"qwen3\"").expect("a model");
        assert_eq!((qwen.head_dim, qwen.qk_norm), (128, true));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for (kind, tied) in [("\"llama\"", "true"), ("\"qwen3\"", "false")] {
            let mut value: Value = serde_json::from_str(LLAMA).expect("JSON");
            value["model_type"] = serde_json::from_str(kind).expect("JSON");
            value["tie_word_embeddings"] = serde_json::from_str(tied).expect("JSON");
            value["head_dim"] = 6.into();
            let (model, _) = read(value.to_string().as_bytes(), "m").expect("a model");
            let written = write(&model, model.layers, 77, 5).expect("it exists there");
            assert_eq!(read(written.to_string().as_bytes(), "m"), Ok((model.clone(), Some(77))));
            for other in [
                Model { norm: Norm { kind: NormKind::Layer { bias: false }, eps: 1e-5 }, ..model.clone() },
                Model { ffn: Ffn::Gelu { width: 48 }, ..model.clone() },
                Model { positions: Positions::None, ..model },
            ] {
                assert_eq!(write(&other, 2, 77, 5), None);
            }
        }
    }

    #[test]
    fn what_cannot_be_computed_is_refused_by_its_field() {
        for (field, to, said) in [
            ("model_type", "\"qwen2\"", "biases"),
            ("model_type", "\"gpt2\"", "gpt2"),
            ("rope_scaling", r#"{"rope_type": "yarn", "factor": 4.0}"#, "yarn"),
            ("rope_scaling", r#"{"type": "linear"}"#, "linear"),
            ("hidden_act", "\"gelu\"", "hidden_act"),
            ("attention_bias", "true", "attention_bias"),
            ("mlp_bias", "true", "mlp_bias"),
            ("quantization_config", r#"{"bits": 4}"#, "quantization_config"),
            ("layer_types", r#"["full_attention", "sliding_attention"]"#, "sliding_attention"),
            ("num_hidden_layers", "0", "num_hidden_layers"),
            ("num_hidden_layers", "5000", "num_hidden_layers"),
            ("vocab_size", "1e30", "vocab_size"),
            ("num_key_value_heads", "3", "num_key_value_heads"),
            ("hidden_size", "30", "hidden_size"),
            ("head_dim", "7", "7 channels"),
            ("rms_norm_eps", "-1", "rms_norm_eps"),
            ("tie_word_embeddings", "\"yes\"", "tie_word_embeddings"),
            ("intermediate_size", "null", "intermediate_size"),
        ] {
            let error = changed(field, to).expect_err(field);
            assert!(error.contains(said), "{field}: {error}");
        }
    }
}
