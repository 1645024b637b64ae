//! What a student takes from a teacher of others before its first step.

use std::path::Path;

use xrun::budget::hub::names;
use xrun::budget::params::{Group, parameters, whole};
use xrun::data::hub::Hub;
use xrun::model::first_values;
use xrun::study::{Embedding, Model, Vocabulary};
use xrun::train::{Lies, Sources};

use crate::build::{model, post, pre};

/// Embedding, head and the boundary norm, which is the exit norm of pre and the entry norm of post, are the teacher's; the rest is drawn. A
/// teacher that is tied gives its embedding as the head.
#[test]
fn embedding_head_and_boundary_norm_are_the_teachers() {
    for teacher in ["qwen3", "qwen3_tied_bf16"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/hub").join(teacher);
        let hub = Hub::open(&folder, teacher).expect("a model");
        let its =
            |name: &str| names(name).iter().find_map(|name| hub.tensors.values(name)).map(|values| values.expect("reads").1);
        let head = its("head").or_else(|| its("embedding")).expect("a head");
        let (embedding, norm) = (its("embedding").expect("an embedding"), its("exit.norm").expect("a norm"));
        assert!(norm.iter().any(|value| *value != 1.0), "a norm that tells something");
        let Vocabulary::Size(size) = hub.model.vocabulary else { panic!("a size") };
        for (placement, boundary) in [(pre(), "exit.norm"), (post(), "entry.norm")] {
            let student = Model {
                embedding: Embedding::Teacher { frozen: true },
                head: Embedding::Teacher { frozen: false },
                width: hub.model.width,
                vocabulary: Vocabulary::Size(size),
                ..model(placement, 2)
            };
            let (stack, ends) = whole(&student);
            let sources = Sources::new(Some(Lies::Folder(folder.clone())), ".".into());
            let mut taken = Vec::new();
            for spec in parameters(&student, &stack, &ends) {
                let first = first_values(7, &spec, false, &sources).expect("first values");
                let from = [("embedding", &embedding), ("head", &head), (boundary, &norm)];
                match from.iter().find(|(name, _)| *name == spec.name) {
                    Some((name, values)) => {
                        assert!(first == **values, "{teacher}, {boundary}: {name}");
                        taken.push(spec.name);
                    }
                    None => assert!(spec.layer.is_some() && spec.group != Group::Head, "{}", spec.name),
                }
            }
            taken.sort_unstable();
            let mut all = ["embedding", "head", boundary];
            all.sort_unstable();
            assert_eq!(taken, all);
        }
    }
}
