//! What an event does to parameters and optimizer state.

use xrun::budget::params::parameters;
use xrun::tensor::Cpu;
use xrun::timeline::{FirstValues, Frozen, LayerId, NewLayer};
use xrun::train::{Checkpoint, Learning, Meta, Sources, State, begin};

use crate::build::*;

/// A stack of two that has trained for three steps.
fn parent() -> Checkpoint {
    let mut bench: Bench<f32, Cpu> = Bench::new(model(pre(), 4), segment(2, 0..3, 1e-2));
    for at in 0..3 {
        bench.step(None, &batch(2, 6, 1, 3), at, 1e-2);
    }
    bench.state.checkpoint(Meta {
        version: Meta::VERSION,
        step: 3,
        data: bench.segment.data,
        stack: bench.segment.stack.clone(),
        updates: Default::default(),
        counts: Default::default(),
        metrics_bytes: 0,
    })
}

fn grow(first: &[FirstValues], reset: bool, frozen: Frozen, parent: &Checkpoint) -> Checkpoint {
    let model = model(pre(), 4);
    let mut segment = segment(4, 3..6, 1e-2);
    let new = |(at, first): (usize, &FirstValues)| NewLayer { layer: LayerId(2 + at as u32), first: first.clone() };
    segment.new_layers = first.iter().enumerate().map(new).collect();
    (segment.reset_optimizer, segment.frozen) = (reset, frozen);
    let specs = parameters(&model, &segment.stack, &segment.block_ends);
    let learning = Learning::new(&model, &specs, &segment);
    let sources = Sources::new(None, ".".into());
    let state: State<f32, Cpu> =
        begin(&Cpu::default(), 7, &specs, &segment, &learning, Some(parent.clone()), &sources).expect("it fits");
    state.checkpoint(parent.meta.clone())
}

#[test]
fn layers_arrive_without_touching_those_that_are_there() {
    let parent = parent();
    let first = [FirstValues::CopyOf(LayerId(1)), FirstValues::Identity];
    let child = grow(&first, false, Frozen::default(), &parent);
    for (name, value) in &parent.params {
        assert!(child.params[name] == *value, "{name}");
        assert!(child.moments[name] == parent.moments[name], "{name}");
        let Some(rest) = name.strip_prefix("layers.1.") else { continue };
        assert!(child.params[&format!("layers.2.{rest}")] == *value, "{name} is copied");
    }
    assert!(child.params["layers.3.attention.o"].1.iter().all(|value| *value == 0.0));
    assert!(child.params["layers.3.ffn.down"].1.iter().all(|value| *value == 0.0));
    assert!(child.moments.keys().all(|name| !name.starts_with("layers.2.") && !name.starts_with("layers.3.")));
    assert_eq!(child.meta.updates["head"], 3);
}

#[test]
fn a_reset_drops_all_state_and_freezing_drops_that_of_the_frozen() {
    let parent = parent();
    let first = [FirstValues::Init, FirstValues::Init];
    assert!(grow(&first, true, Frozen::default(), &parent).moments.is_empty());
    let frozen = Frozen { layers: [LayerId(0)].into(), prefix: 1, head: true, ..Frozen::default() };
    let child = grow(&first, false, frozen, &parent);
    assert!(child.moments.keys().all(|name| !name.starts_with("layers.0.") && name != "head"));
    assert!(child.moments.contains_key("embedding") && child.moments.contains_key("layers.1.ffn.up"));
}

/// A parameter's first value is a function of seed and name: growing late gives what being there from the start gives.
#[test]
fn first_values_do_not_depend_on_when_a_layer_arrives() {
    let model = model(pre(), 4);
    let whole = segment(4, 0..3, 1e-2);
    let specs = parameters(&model, &whole.stack, &whole.block_ends);
    let learning = Learning::new(&model, &specs, &whole);
    let sources = Sources::new(None, ".".into());
    let at_once: State<f32, Cpu> = begin(&Cpu::default(), 7, &specs, &whole, &learning, None, &sources).expect("it fits");
    let parent = parent();
    let at_once = at_once.checkpoint(parent.meta.clone());
    let late = grow(&[FirstValues::Init, FirstValues::Init], false, Frozen::default(), &parent);
    for (name, value) in late.params.iter().filter(|(name, _)| name.starts_with("layers.2.") || name.starts_with("layers.3.")) {
        assert!(at_once.params[name] == *value, "{name}");
    }
    let values = &at_once.params["layers.3.ffn.up"].1;
    let square = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / values.len() as f64;
    assert!((square.sqrt() - 0.3).abs() < 0.03, "the standard deviation is the model's");
}
