//! `xrun bench`: times training steps, at a named shape or at a study's own.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::worker::store_of;
use super::{Fault, Manner, Outcome, Which, load, output};
use crate::check::check;
use crate::data::{Reach, gather};
use crate::plan::node::{Phase, Work};
use crate::plan::{self, Plan};
use crate::run::Store;
use crate::run::record::SpeedRecord;
use crate::source::{Source, World};
use crate::train::bench::{Course, ceiling, time};

/// Time a training step and print what was seen as a line of JSON; for a study, keep the speed for `xrun plan`
#[derive(Args)]
pub struct Arguments {
    /// An .exp file: times the phase that costs the most, and keeps the speed in the store
    #[arg(conflicts_with = "shape")]
    file: Option<PathBuf>,
    /// The study, where the file has several
    #[arg(long, value_name = "NAME", requires = "file")]
    study: Option<String>,
    /// The folder of results [default: .xrun beside FILE]
    #[arg(long, env = "XRUN_STORE", value_name = "FOLDER", hide_env_values = true)]
    store: Option<PathBuf>,
    /// A named shape
    #[arg(long, value_enum, default_value_t = Shape::S)]
    shape: Shape,
    #[command(flatten)]
    sides: Sides,
    /// Wiring of a named shape
    #[arg(long, value_enum, default_value_t = Placement::Pre, value_name = "PLACEMENT")]
    placement: Placement,
    /// Loss of a named shape: cross entropy, or 0.3 of it and 0.7 of KL to a teacher
    #[arg(long, value_enum, default_value_t = Loss::Ce, value_name = "LOSS")]
    loss: Loss,
    /// Layers at the bottom of a named shape that are frozen
    #[arg(long, value_name = "N", default_value = "0")]
    frozen_layers: usize,
    /// Steps that are timed
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u16).range(1..))]
    steps: u16,
    /// Steps before them that are not
    #[arg(long, value_name = "N", default_value = "2")]
    warmup: u16,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// First values, tokens and a teacher's logits, for comparing losses with other programs
    #[arg(long, value_name = "SAFETENSORS")]
    start: Option<PathBuf>,
}

/// What of a named shape is to be otherwise.
#[derive(Args)]
struct Sides {
    /// Width
    #[arg(long, value_name = "N")]
    d_model: Option<usize>,
    /// Layers
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// Query heads
    #[arg(long, value_name = "N")]
    heads: Option<usize>,
    /// Key/value heads
    #[arg(long, value_name = "N")]
    kv_heads: Option<usize>,
    /// Hidden width of the feed-forward network
    #[arg(long, value_name = "N")]
    ffn: Option<usize>,
    /// Vocabulary
    #[arg(long, value_name = "N")]
    vocab: Option<usize>,
    /// Tokens of a sequence
    #[arg(long, value_name = "N")]
    seq: Option<usize>,
    /// Sequences of a step
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[value(rename_all = "verbatim")]
enum Shape {
    S,
    M,
    L,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Placement {
    Pre,
    Post,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Loss {
    Ce,
    Kd,
}

pub fn bench(arguments: &Arguments, manner: Manner) -> Result<Outcome, Fault> {
    let plan = match &arguments.file {
        Some(file) => {
            let (study, store) = (arguments.study.clone(), arguments.store.clone());
            load::plan(&Which { file: file.clone(), study, store }, manner)?
        }
        None => named(arguments)?,
    };
    let (phase, flops) = costliest(&plan)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or(cores, usize::from);
    let course =
        Course { warmup: arguments.warmup.into(), steps: arguments.steps.into(), threads, frozen: arguments.frozen_layers };
    let seen = time(phase, course, arguments.start.as_deref()).map_err(|failure| Fault::Input(failure.to_string()))?;
    let peak = peak();
    let mut sorted = seen.seconds.clone();
    sorted.sort_by(f64::total_cmp);
    let (median, least, most) = (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1]);
    let ceiling = ceiling(threads);
    // The plan knows nothing of layers that are frozen here.
    let flops = (arguments.frozen_layers == 0).then_some(flops);
    let speed = |seconds: f64| flops.map(|flops| flops / seconds);
    let rounded = |value: f64, digits: i32| (value * 10f64.powi(digits)).round() / 10f64.powi(digits);
    let line = json!({
        "impl": "xrun", "mode": "fused",
        "study": arguments.file.is_some().then(|| plan.study.name.clone()),
        "shape": arguments.file.is_none().then(|| format!("{:?}", arguments.shape)),
        "threads": threads, "steps": seen.seconds.len(),
        "params": seen.parameters, "tokens_per_step": seen.tokens,
        "median_step_ms": rounded(1e3 * median, 3), "min_step_ms": rounded(1e3 * least, 3), "max_step_ms": rounded(1e3 * most, 3),
        "first_step_s": rounded(seen.first, 3),
        "tokens_per_s": rounded(seen.tokens as f64 / median, 1),
        "loss_first": seen.losses.first().map(|loss| rounded(*loss, 6)),
        "loss_last": seen.losses.last().map(|loss| rounded(*loss, 6)),
        "peak_rss_mb": rounded(peak, 1),
        "cpu_per_wall": rounded(seen.cores, 2),
        "flops_per_step": flops,
        "gflops": speed(median).map(|speed| rounded(speed / 1e9, 1)), "gflops_best": speed(least).map(|speed| rounded(speed / 1e9, 1)),
        "gemm_gflops": rounded(ceiling / 1e9, 1), "of_gemm": speed(median).map(|speed| rounded(speed / ceiling, 3)),
    });
    output::say(&format!("{line}\n"))?;
    if let (Some(file), Some(flops_per_second)) = (&arguments.file, speed(median)) {
        let store = Store::at(store_of(file, arguments.store.as_deref()));
        let record = SpeedRecord { flops_per_second, threads };
        store.keep_speed(&record).map_err(|error| Fault::Machine(error.to_string()))?;
    }
    Ok(Outcome::Done)
}

/// The phase with the most FLOPs, and those of one of its steps.
fn costliest(plan: &Plan) -> Result<(&Phase, f64), Fault> {
    let phases = plan.nodes().into_iter().filter_map(|node| match &node.work {
        Work::Phase(phase) | Work::Teacher(phase) => {
            let cost = plan.cost(&node.key)?;
            Some((phase, cost.flops()?, cost.steps.max(1) as f64))
        }
        _ => None,
    });
    let most = phases.max_by(|one, other| one.1.total_cmp(&other.1));
    let (phase, flops, steps) = most.ok_or_else(|| Fault::Input(format!("`{}` trains nothing", plan.study.name)))?;
    Ok((phase, flops / steps))
}

struct Alone;

impl World for Alone {
    fn read(&self, _: &str, name: &str) -> Result<Source, String> {
        Err(format!("`{name}` is no file"))
    }
}

/// A study of one phase at a named shape.
fn named(arguments: &Arguments) -> Result<Plan, Fault> {
    let sides = &arguments.sides;
    // Those of the peers that steps are compared with.
    let [width, heads, kv_heads, ffn, vocabulary, context, batch] = match arguments.shape {
        Shape::S => [128, 4, 2, 384, 512, 128, 16],
        Shape::M => [256, 8, 4, 768, 4096, 256, 8],
        Shape::L => [512, 8, 4, 1536, 16_384, 256, 4],
    };
    let layers = sides.layers.unwrap_or(9);
    let placement = match arguments.placement {
        Placement::Pre => "sublayer x + f(norm(x)), exit norm(x)",
        Placement::Post => "sublayer norm(x + f(x))",
    };
    let (teacher, loss) = match arguments.loss {
        Loss::Ce => ("", "cross_entropy"),
        Loss::Kd => ("teacher other { model shape, train 1000 steps with first }", "0.3 * cross_entropy + 0.7 * kl(other)"),
    };
    let text = format!(
        "use std.schedules (joint)
         placement wiring {{ {placement} }}
         data text {{ generate tales(documents: 400), context {context} tokens }}
         model shape {{ layers {layers}, block {layers} layers, width {width}, heads {heads}, kv {kv}, ffn swiglu({ffn}),
                        vocabulary {vocabulary}, qk_norm on, embedding tied, head tied, placement wiring }}
         training first {{ loss cross_entropy, optimizer adamw(lr: 3e-4, decay: 0.1, decay_on: all), clip 1, batch {batch} sequences }}
         {teacher}
         training timed = first with {{ loss {loss} }}
         study bench {{ data text, model shape, training timed, schedule joint(steps: 1000 steps), seeds 1 }}",
        context = sides.seq.unwrap_or(context),
        width = sides.d_model.unwrap_or(width),
        heads = sides.heads.unwrap_or(heads),
        kv = sides.kv_heads.unwrap_or(kv_heads),
        ffn = sides.ffn.unwrap_or(ffn),
        vocabulary = sides.vocab.unwrap_or(vocabulary),
        batch = sides.batch.unwrap_or(batch),
    );
    let mut checked = check(&Alone, Source::new("bench", text));
    let said = checked.problems.render(&checked.sources, false);
    let study = checked.studies.pop().filter(|_| !checked.problems.has_errors()).ok_or(Fault::Input(said))?;
    plan::build(&study, &gather(&study, Path::new(""), &Reach::whole())).map_err(|error| Fault::Input(error.to_string()))
}

/// The largest resident size so far, in MB of 1,024 KB as peers give it.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    line.and_then(|size| size.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
