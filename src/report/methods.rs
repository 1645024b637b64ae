//! What was done, in prose: the paragraph that a paper's methods section would have.
//!
//! Owns words only: every number is the study's. Where arms differ in what an axis varies, the first arm speaks for the rest.

use std::collections::BTreeSet;

use crate::study::training::Shape;
use crate::study::{
    Action, Cache, Ffn, Floor, Init, Layout, Loss, LossTerm, NormKind, Optimizer, Positions, Recipe, Shard, Teacher,
    TeacherSource, Training, Warmup,
};

use super::number::{self, listed, plural};
use super::reading::{Reading, events};

/// Design, model, data and training, schedules, statistics; `documents`: whether the noise of evaluation is told.
pub fn paragraphs(reading: &Reading<'_>, documents: bool) -> Vec<String> {
    let mut paragraphs = vec![design(reading)];
    if let Some(arm) = reading.study().arms.first() {
        let varied: Vec<String> = reading.study().axes.iter().map(|axis| axis.name.clone()).collect();
        let note = if varied.is_empty() { String::new() } else { format!(" Arms differ from this in {} only.", listed(&varied)) };
        paragraphs.push(format!("{} {}{note}", model(&arm.recipe), training(&arm.recipe)));
    }
    paragraphs.push(schedules(reading));
    paragraphs.push(statistics(reading, documents));
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

fn design(reading: &Reading<'_>) -> String {
    let study = reading.study();
    let controls = study.arms.iter().filter(|arm| arm.control.is_some()).count();
    let cells = study.arms.len() - controls;
    let axes: Vec<String> = study
        .axes
        .iter()
        .map(|axis| {
            format!("{} ({})", axis.name, axis.values.iter().map(|value| value.label.as_str()).collect::<Vec<_>>().join(", "))
        })
        .collect();
    let by = if axes.is_empty() { String::new() } else { format!(" by {}", axes.join(" × ")) };
    let extra = if controls == 0 { String::new() } else { format!(" and {}", plural(controls as u64, "control")) };
    let seeds: Vec<String> = study.seeds.iter().map(u64::to_string).collect();
    let runs = study.arms.len() * study.seeds.len();
    let word = if seeds.len() == 1 { "seed" } else { "seeds" };
    format!(
        "The study {} compares {}{by}{extra}, each under {word} {}: {}. Under one seed, a parameter of the same name starts with the same \
         values in every arm, and all arms read the same sequences in the same order, so that differences are paired by seed.",
        study.name,
        plural(cells as u64, "arm"),
        listed(&seeds),
        plural(runs as u64, "run")
    )
}

fn model(recipe: &Recipe) -> String {
    let model = &recipe.model;
    let ffn = match model.ffn {
        Ffn::SwiGlu { width } => format!("SwiGLU {width}"),
        Ffn::Gelu { width } => format!("GELU {width}"),
    };
    let norm = match model.norm.kind {
        NormKind::Rms => format!("RMSNorm (eps {:e})", model.norm.eps),
        NormKind::Layer { .. } => format!("LayerNorm (eps {:e})", model.norm.eps),
        NormKind::Dyt { alpha } => format!("Dynamic Tanh (alpha from {alpha}) in the place of norms"),
        NormKind::None => "nothing in the place of norms".to_owned(),
    };
    let positions = match model.positions {
        Positions::Rope { base } => format!("rotary positions of base {base}"),
        Positions::None => "no positions".to_owned(),
    };
    let init = match &model.init {
        Init::Normal { std } => format!("matrices start normal with standard deviation {}", significant(*std)),
        Init::From { file, .. } => format!("parameters start from {file}"),
    };
    format!(
        "The model {} has {} in blocks of {}, width {}, {} of {} ({} for keys and values), {ffn}, {norm} and {positions}; {init}.",
        model.name,
        plural(model.layers as u64, "layer"),
        model.block,
        model.width,
        plural(model.heads as u64, "head"),
        model.head_dim,
        model.kv_heads
    )
}

/// To four significant digits.
fn significant(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    rounded.to_string()
}

fn training(recipe: &Recipe) -> String {
    let (data, training) = (&recipe.data, &recipe.training);
    let layout = match data.layout {
        Layout::Packed => "packed, documents not seeing each other",
        Layout::Padded => "one document each, padding not counted",
    };
    let shard = match data.shard {
        Shard::Whole => String::new(),
        Shard::Tokens(tokens) => format!(", cycling a shard of {} tokens", number::short(tokens)),
    };
    let clip = training
        .clip
        .map_or_else(|| "without clipping".to_owned(), |clip| format!("gradients clipped to a global norm of {clip}"));
    let teachers: String = recipe.all_teachers().into_iter().map(|teacher| self::teacher(teacher)).collect();
    format!(
        "It reads {} in sequences of {} tokens ({layout}{shard}), {} a step, and minimises {} by {}, {clip}.{teachers}",
        data.name,
        number::exact(data.context as u64),
        plural(training.batch.sequences, "sequence"),
        loss(&training.loss),
        optimizer(training)
    )
}

fn optimizer(training: &Training) -> String {
    let (rate, lr, (decay, _)) = (rate(training), training.optimizer.lr(), training.optimizer.decay());
    let nesterov = |nesterov: bool| if nesterov { "Nesterov momentum" } else { "momentum" };
    match training.optimizer {
        Optimizer::AdamW { betas, eps, .. } => {
            format!("AdamW (learning rate {lr:e}, betas {} and {}, eps {eps:e}, decay {decay}; {rate})", betas.0, betas.1)
        }
        Optimizer::Sgd { momentum: 0.0, .. } => {
            format!("gradient descent (learning rate {lr:e}, no momentum, decoupled decay {decay}; {rate})")
        }
        Optimizer::Sgd { momentum, nesterov: looks, .. } => {
            let kind = nesterov(looks);
            format!("gradient descent (learning rate {lr:e}, {kind} {momentum}, decoupled decay {decay}; {rate})")
        }
        Optimizer::Lion { betas, .. } => {
            format!("Lion (learning rate {lr:e}, betas {} and {}, decay {decay}; {rate})", betas.0, betas.1)
        }
        Optimizer::Muon { momentum, nesterov: looks, betas, eps, .. } => format!(
            "Muon ({} {momentum}) on the matrices of layers, its updates scaled to 0.2 RMS, and AdamW (betas {} and {}, eps {eps:e}) on \
             all else (both at learning rate {lr:e}, decay {decay}; {rate})",
            nesterov(looks),
            betas.0,
            betas.1
        ),
    }
}

fn teacher(teacher: &Teacher) -> String {
    let (name, source) = (&teacher.name, source(&teacher.source));
    match teacher.cache {
        Cache::None => format!(" The teacher {name} is {source}, run online."),
        Cache::All => format!(" The teacher {name} is {source}, all log-probabilities cached."),
        Cache::Top(k) => format!(" The teacher {name} is {source}; its top {k} log-probabilities are cached."),
    }
}

fn source(source: &TeacherSource) -> String {
    match source {
        TeacherSource::Trained { model, steps, training, teachers } => {
            let learns = if teachers.is_empty() { String::new() } else { format!(" to minimise {}", loss(&training.loss)) };
            format!(
                "a model of {} and width {} trained for {}{learns}",
                plural(model.layers as u64, "layer"),
                model.width,
                plural(*steps, "step")
            )
        }
        TeacherSource::Checkpoint { folder, .. } => format!("the checkpoint {folder}"),
    }
}

fn loss(loss: &Loss) -> String {
    let alone = loss.terms.len() == 1;
    let terms = loss.terms.iter().map(|(factor, term)| {
        let name = match term {
            LossTerm::CrossEntropy => "cross entropy".to_owned(),
            LossTerm::Kl { teacher, temperature } => format!("KL({teacher} ‖ student) at temperature {temperature}"),
            LossTerm::ReverseKl { teacher, temperature } => format!("KL(student ‖ {teacher}) at temperature {temperature}"),
            LossTerm::Jsd { teacher, temperature, beta } => {
                format!(
                    "the generalised Jensen-Shannon divergence of {teacher} and student, β {beta}, at temperature {temperature}"
                )
            }
            LossTerm::Mse { teacher } => format!("the mean squared difference of the logits of {teacher} and student"),
        };
        if alone && *factor == 1.0 { name } else { format!("{factor} · {name}") }
    });
    terms.collect::<Vec<_>>().join(" + ")
}

fn rate(training: &Training) -> String {
    let warmup = match training.rate.warmup {
        Warmup::Steps(0) => String::new(),
        Warmup::Steps(steps) => format!("warm-up of {}, then ", plural(steps, "step")),
        Warmup::Fraction(fraction) => format!("warm-up of {} %, then ", significant(fraction * 100.0)),
    };
    let floor = |floor: Floor| match floor {
        Floor::OfPeak(fraction) => format!("{} % of the peak", significant(fraction * 100.0)),
        Floor::Rate(rate) => format!("{rate:e}"),
    };
    let shape = match training.rate.shape {
        Shape::Constant => "constant".to_owned(),
        Shape::Linear { to } => format!("a line to {}", floor(to)),
        Shape::Cosine { to } => format!("a cosine to {}", floor(to)),
        Shape::Wsd { decay } => format!("constant with a decay over the last {} %", significant(decay * 100.0)),
    };
    format!("{warmup}{shape}")
}

/// What an arm is and how it was trained: model, data and training, course.
pub fn of_arm(reading: &Reading<'_>, arm: usize) -> Vec<String> {
    let recipe = &reading.study().arms[arm].recipe;
    let course = course(reading, arm).map(|course| format!("Course of training: {course}."));
    [model(recipe), training(recipe)].into_iter().chain(course).collect()
}

/// Each different course of training.
fn schedules(reading: &Reading<'_>) -> String {
    let mut seen = BTreeSet::new();
    let courses = (0..reading.study().arms.len()).filter_map(|arm| course(reading, arm));
    let texts: Vec<String> = courses.filter(|text| seen.insert(text.clone())).collect();
    if texts.is_empty() { String::new() } else { format!("Courses of training: {}.", texts.join("; ")) }
}

/// Depth over steps.
fn course(reading: &Reading<'_>, arm: usize) -> Option<String> {
    let run = reading.runs_of(arm).next()?;
    let arm = &reading.study().arms[arm];
    let name = if arm.control.is_some() { &arm.name } else { &arm.recipe.schedule.name };
    let mut course: Vec<String> = Vec::new();
    let mut last = None;
    for segment in run.segments.iter().rev() {
        if last.replace(segment.depth()) != Some(segment.depth()) {
            course.push(format!("{} until step {}", plural(segment.depth() as u64, "layer"), number::exact(segment.steps.end)));
        }
    }
    course.reverse();
    for segment in &run.segments {
        let from = number::exact(segment.steps.start);
        for action in &segment.actions {
            if let Action::SetLoss(set) = action {
                course.push(format!("{} is minimised from step {from} on", loss(set)));
            } else if let Action::SetContext(tokens) = action {
                course.push(format!("sequences have {} from step {from} on", plural(*tokens as u64, "token")));
            }
        }
    }
    let count = events(run).len() as u64;
    let events = if count == 0 { String::new() } else { format!(" ({})", plural(count, "event")) };
    Some(format!("{name}: {}{events}", course.join(", ")))
}

fn statistics(reading: &Reading<'_>, documents: bool) -> String {
    let evaluated = reading.metrics().first().and_then(|metric| Some((metric.name(), reading.every(*metric)?)));
    let evaluated = evaluated.map_or_else(String::new, |(name, every)| {
        format!("{name} is measured every {}, around every event and at the scheduled end; the end is what is compared, never the best checkpoint. ", plural(every, "step"))
    });
    let shared = shared(reading);
    let documents = if documents {
        " The noise of evaluation stands beside the estimate: how far it moves with the documents that are held out, as the 95 % interval of a \
         mean over tokens of which documents are the sample (a ratio of two sums), of differences paired by document and averaged over seeds."
    } else {
        ""
    };
    format!(
        "{evaluated}Intervals are two-sided 95 % Student intervals over seeds. A claim with < or > is decided where the interval of its paired \
         difference excludes 0; a claim with ~ is supported where the 90 % interval lies within its margin (two one-sided tests at 5 %) and \
         refuted where the 95 % interval lies outside it. The first claim that compares differences is the primary one; the others are \
         corrected by Holm's method. Runs that diverged, are under way or are missing are counted and never averaged in. Beside each \
         p-value stands that of the exact sign-flip test where there are 2 to 16 seeds (it cannot be below 0.05 with fewer than 6); no verdict \
         rests on it.{documents}{shared}"
    )
}

/// Which arms have phases in common, and what follows for their comparison.
fn shared(reading: &Reading<'_>) -> String {
    let mut users: std::collections::BTreeMap<&str, BTreeSet<usize>> = std::collections::BTreeMap::new();
    for run in &reading.story.runs {
        for key in &run.phase_keys {
            users.entry(key).or_default().insert(run.arm);
        }
    }
    let groups: BTreeSet<Vec<usize>> =
        users.into_values().filter(|arms| arms.len() > 1).map(|arms| arms.into_iter().collect()).collect();
    let names = |arms: &Vec<usize>| listed(&arms.iter().map(|arm| reading.study().arms[*arm].name.clone()).collect::<Vec<_>>());
    const SHOWN: usize = 6;
    let mut told: Vec<String> = groups.iter().take(SHOWN).map(names).collect();
    if groups.len() > SHOWN {
        told.push(format!("{} more groups", groups.len() - SHOWN));
    }
    if told.is_empty() {
        return String::new();
    }
    format!(
        " Some arms share their first phases under each seed, trained once ({}), and so are not independent of one another. Seeds are: a \
         difference is taken within a seed, where what is shared cancels, and its interval rests on the differences of n independent seeds. The \
         intervals of such arms' own means, side by side, say nothing of their difference.",
        told.join("; ")
    )
}
