//! Caches of a teacher of others: what its layers say one after the other, and how what they say is kept.

use std::path::Path;
use std::sync::Arc;

use xrun::budget::speaking::together;
use xrun::data::Reader;
use xrun::data::corpus::Part;
use xrun::data::hub::Hub;
use xrun::plan::node::{Key, TeacherLogits, Work};
use xrun::study::{Cache, Layout};
use xrun::tensor::{Cpu, Fused, TeacherRows};
use xrun::train::{Logits, LogitsHeader, OnlineTeacher};

use crate::phases::{Store, data};

const VOCABULARY: usize = 300;
const TEMPERATURE: f64 = 2.0;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/hub/qwen3")
}

/// A cache of the teacher in `tests/reference/hub/qwen3`.
fn cache(layout: Layout, cache: Cache) -> Work {
    let model = Arc::new(Hub::open(&folder(), "teacher").expect("a model").model);
    let (corpus, teacher) = (Key("corpus".into()), Key("none".into()));
    let (data, folder) = (Arc::new(data(layout)), Some("qwen3".into()));
    Work::TeacherLogits(Box::new(TeacherLogits {
        corpus,
        data,
        teacher,
        model,
        folder,
        cache,
        temperature: TEMPERATURE,
        shards: 1,
    }))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

/// The whole model in memory, asked about the same batches, says the same to the bit; where a row is padded there are zeros.
#[test]
fn a_teacher_that_is_streamed_says_what_the_whole_one_says() {
    for layout in [Layout::Packed, Layout::Padded] {
        let store = Store::new(layout);
        store.done("all", cache(layout, Cache::All));
        let hub = Hub::open(&folder(), "teacher").expect("a model");
        let device = Cpu::default();
        let values = |name: &str| {
            let names = xrun::budget::hub::names(name);
            Ok(names.iter().find_map(|name| hub.tensors.values(name)).expect("a tensor").expect("reads"))
        };
        let whole: OnlineTeacher<f32, Cpu> = OnlineTeacher::read(&device, &hub.model, values, 0).expect("a teacher");
        let reader = Reader::open(&store.folder("corpus"), &data(layout)).expect("a corpus");
        let together = together(16) as u64;
        let total = reader.shards().sequences(0).end;
        let kept = floats(&std::fs::read(store.folder("all").join("train.logits")).expect("a file"));
        assert!(layout == Layout::Padded || total > together, "more than one batch");
        assert_eq!(kept.len(), total as usize * 16 * VOCABULARY);
        for start in (0..total).step_by(together as usize) {
            let batch = reader.train_sequences(&(start..(start + together).min(total)).collect::<Vec<_>>());
            let mut said = Vec::new();
            whole.speak::<Fused>(&device, &batch, TEMPERATURE, |logs| said.extend_from_slice(logs)).expect("speaks");
            for (row, said) in said.chunks_exact(batch.context * VOCABULARY).enumerate() {
                let own = &kept[(start as usize + row) * 16 * VOCABULARY..][..16 * VOCABULARY];
                let (own, padding) = own.split_at(said.len());
                assert!(own == said && padding.iter().all(|value| *value == 0.0), "{layout:?}: {start} + {row}");
            }
        }
    }
}

/// The layout of a cache is its documentation's: K tokens, then K + 1 log-probabilities whose masses sum to one.
#[test]
fn a_cache_is_read_by_its_documentation_and_under_its_own_setting_alone() {
    let store = Store::new(Layout::Packed);
    store.done("some", cache(Layout::Packed, Cache::Top(8)));
    let at = store.folder("some");
    let header: LogitsHeader = serde_json::from_slice(&std::fs::read(at.join("logits.json")).expect("a header")).expect("JSON");
    assert_eq!((header.vocabulary, header.context, header.top, header.temperature), (VOCABULARY, 16, Some(8), TEMPERATURE));
    let text = std::fs::read_to_string(at.join("logits.json")).expect("a header");
    assert!(text.contains("\"missing\":\"one_outcome\""), "{text}");
    let bytes = std::fs::read(at.join("train.logits")).expect("a file");
    assert_eq!(bytes.len() as u64, header.train * 16 * 4 * 17);
    for cell in bytes.chunks_exact(4 * 17) {
        let (tokens, logs) = cell.split_at(4 * 8);
        let tokens = tokens.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        assert_eq!(tokens.clone().collect::<std::collections::BTreeSet<_>>().len(), 8);
        assert!(tokens.max() < Some(VOCABULARY as u32));
        let logs = floats(logs);
        assert!(logs[..8].is_sorted_by(|a, b| a >= b));
        let mass: f64 = logs.iter().map(|log| f64::from(*log).exp()).sum();
        assert!((mass - 1.0).abs() < 1e-5, "{mass}");
    }
    // The memory map shows the same.
    let open = |vocabulary, context, cache, temperature| Logits::open(&at, vocabulary, context, cache, temperature);
    let reader = Reader::open(&store.folder("corpus"), &data(Layout::Packed)).expect("a corpus");
    let batch = reader.train_sequences(&[3]);
    let cache = open(VOCABULARY, 16, Cache::Top(8), TEMPERATURE).expect("a cache");
    let rows: TeacherRows<f32, Cpu> = cache.rows(&Cpu::default(), &batch, Part::Train).expect("rows");
    assert!(matches!(rows, TeacherRows::Top { .. }));
    // And nothing is read that was kept in another way.
    let refused = |vocabulary, context, cache, temperature| {
        open(vocabulary, context, cache, temperature).map(|_| ()).expect_err("another cache").to_string()
    };
    let has = "the cache of the teacher's logits keeps 8 tokens of 300 at temperature 2 in sequences of 16, expected";
    let top = Cache::Top(8);
    assert_eq!(refused(300, 16, top, 1.0), format!("{has} 8 tokens of 300 at temperature 1 in sequences of 16"));
    assert_eq!(refused(301, 16, top, 2.0), format!("{has} 8 tokens of 301 at temperature 2 in sequences of 16"));
    assert_eq!(refused(300, 32, top, 2.0), format!("{has} 8 tokens of 300 at temperature 2 in sequences of 32"));
    assert_eq!(refused(300, 16, Cache::Top(7), 2.0), format!("{has} 7 tokens of 300 at temperature 2 in sequences of 16"));
    assert_eq!(refused(300, 16, Cache::All, 2.0), format!("{has} all tokens of 300 at temperature 2 in sequences of 16"));
    let other = text.replace("one_outcome", "renormalised");
    std::fs::write(at.join("logits.json"), other).expect("writes");
    assert!(
        refused(300, 16, top, 2.0).starts_with("the cache of the teacher's logits is damaged: unknown variant `renormalised`")
    );
}
