//! Our parameters under the names that Hugging Face's Llama and Qwen3 give them, and whether a folder has exactly those.
//!
//! Owns the table of names, for loading and for comparing. Deliberately knows no file. Source: `modeling_llama.py` and
//! `modeling_qwen3.py` of transformers 5.

use std::collections::BTreeMap;

use super::params::{ParamSpec, parameters, tied, whole};
use crate::study::Model;

/// The names that a parameter may have there, likeliest first: a model that was saved without its head lacks the prefix.
/// None: a model of theirs has nothing of the kind.
pub fn names(own: &str) -> Vec<String> {
    let of_layer = |rest: &str| -> Option<String> {
        let (number, part) = rest.split_once('.')?;
        let part = match part {
            "attention.norm" => "input_layernorm",
            "ffn.norm" => "post_attention_layernorm",
            "attention.q" => "self_attn.q_proj",
            "attention.k" => "self_attn.k_proj",
            "attention.v" => "self_attn.v_proj",
            "attention.o" => "self_attn.o_proj",
            "attention.q_norm" => "self_attn.q_norm",
            "attention.k_norm" => "self_attn.k_norm",
            "ffn.gate" => "mlp.gate_proj",
            "ffn.up" => "mlp.up_proj",
            "ffn.down" => "mlp.down_proj",
            _ => return None,
        };
        Some(format!("layers.{number}.{part}.weight"))
    };
    let bare = match own {
        "head" => return vec!["lm_head.weight".to_owned()],
        "embedding" => Some("embed_tokens.weight".to_owned()),
        "exit.norm" => Some("norm.weight".to_owned()),
        _ => own.strip_prefix("layers.").and_then(of_layer),
    };
    bare.map_or_else(Vec::new, |bare| vec![format!("model.{bare}"), bare])
}

/// Whether the tensors of a folder, with their shapes, are exactly the parameters of a model; if not, what was expected and what is there.
pub fn compare(model: &Model, tensors: &[(String, Vec<usize>)]) -> Result<(), String> {
    let (stack, block_ends) = whole(model);
    let specs = parameters(model, &stack, &block_ends);
    let present = tensors.iter().filter(|(name, _)| !is_idle(name, model));
    let mut left: BTreeMap<&str, &Vec<usize>> = present.map(|(name, shape)| (name.as_str(), shape)).collect();
    let (mut missing, mut shapes) = (Vec::new(), Vec::new());
    for ParamSpec { name, shape, .. } in &specs {
        let names = names(name);
        match names.iter().find_map(|name| left.remove_entry(name.as_str())) {
            Some((_, found)) if found == shape => {}
            Some((other, found)) => shapes.push(format!("`{other}` has shape {found:?}, expected {shape:?}")),
            None => missing.push(names.into_iter().next().unwrap_or_else(|| name.clone())),
        }
    }
    let extra: Vec<String> = left.into_keys().map(str::to_owned).collect();
    if missing.is_empty() && extra.is_empty() {
        return if shapes.is_empty() { Ok(()) } else { Err(few(&shapes)) };
    }
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { few(names) };
    Err(format!(
        "{} tensors expected, {} present; missing: {}; not expected: {}",
        specs.len(),
        tensors.len(),
        list(&missing),
        list(&extra)
    ))
}

/// Whether a file holds each of these parameters, under our name or theirs, in its shape; it may hold others.
pub fn holds(specs: impl Iterator<Item = ParamSpec>, tensors: &[(String, Vec<usize>)]) -> Result<(), String> {
    let present: BTreeMap<&str, &Vec<usize>> = tensors.iter().map(|(name, shape)| (name.as_str(), shape)).collect();
    for ParamSpec { name, shape, .. } in specs {
        let found = std::iter::once(name.clone()).chain(names(&name)).find_map(|name| present.get(name.as_str()).copied());
        match found {
            Some(found) if *found == shape => {}
            Some(found) => return Err(format!("`{name}` has shape {found:?}, expected {shape:?}")),
            None => return Err(format!("it has no tensor `{name}`")),
        }
    }
    Ok(())
}

/// What old files hold besides parameters: tables that follow from the configuration, and a head that is the embedding once more.
fn is_idle(name: &str, model: &Model) -> bool {
    name.ends_with(".rotary_emb.inv_freq") || name == "lm_head.weight" && tied(model)
}

/// The first of a list, and how many more there are.
fn few(all: &[String]) -> String {
    /// A layer has eleven tensors: enough to see which one it is.
    const MOST: usize = 12;
    match all.len().saturating_sub(MOST) {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..MOST].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::testing::model;
    use crate::study::Embedding;

    fn tensors(model: &Model) -> Vec<(String, Vec<usize>)> {
        let (stack, ends) = whole(model);
        let own = parameters(model, &stack, &ends);
        own.into_iter().map(|spec| (names(&spec.name).swap_remove(0), spec.shape)).collect()
    }

    #[test]
    fn a_folder_has_each_parameter_and_no_other() {
        let model = Model { layers: 2, block: 1, embedding: Embedding::Own, head: Embedding::Own, ..model() };
        let mut all = tensors(&model);
        assert_eq!(compare(&model, &all), Ok(()));
        all.push(("model.layers.1.self_attn.rotary_emb.inv_freq".into(), vec![4]));
        assert_eq!(compare(&model, &all), Ok(()));
        let at = all.iter().position(|(name, _)| name == "model.layers.1.mlp.up_proj.weight").expect("there");
        let (name, shape) = all.remove(at);
        all.push(("model.layers.1.mlp.upp.weight".into(), shape.clone()));
        let error = compare(&model, &all).expect_err("refused");
        assert!(
            error.ends_with("missing: model.layers.1.mlp.up_proj.weight; not expected: model.layers.1.mlp.upp.weight"),
            "{error}"
        );
        all.pop();
        all.push((name, vec![shape[1], shape[0]]));
        assert!(compare(&model, &all).expect_err("refused").contains("`model.layers.1.mlp.up_proj.weight` has shape"));
    }
}
