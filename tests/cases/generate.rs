//! Programs at random, all of them right, each in any layout that the language allows.
//!
//! [`program`] chooses what is said and writes the places where it may be broken as marks; [`laid`] chooses how they are filled. A blank is a blank.
//!
//! | mark | stands for |
//! | --- | --- |
//! | `·` | nothing, a blank, a line end: inside brackets |
//! | `↵` | a blank or a line end: inside brackets, after a comma, around an operator |
//! | `¶` | the end of a statement: a comma, a line end or both |
//! | `⟨`, `⟩` | behind `{` and before `}`: nothing, a blank, a line end |
//! | `§` | the end of an entry |
//! | `‖` | the place before something that may be described |

use super::random::Random;

/// How a program is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As people write.
    Plain,
    /// As nobody would, with comments wherever a line may end.
    Odd,
}

const COMMENTS: [&str; 10] = [
    "// a comment",
    "//",
    "// it says \"nothing",
    "// brackets ) ] } { [ (",
    "// commas, colons: and = signs",
    "//no blank",
    "// // twice",
    "// model m { layers 2 }",
    "// Überraschung: 模型 → ∞",
    "// at the end,",
];

/// Fills the marks of a program.
pub fn laid(program: &str, layout: Layout, random: &mut Random) -> String {
    let mut out = String::new();
    let odd = layout == Layout::Odd;
    for letter in program.chars() {
        match (letter, odd) {
            ('·', false) => {}
            ('↵', false) | (' ', false) => out.push(' '),
            ('¶', false) => out.push_str("\n  "),
            ('⟨' | '⟩', false) => out.push(' '),
            ('§', false) => out.push_str("\n\n"),
            ('‖', _) => {
                if random.once_in(3) {
                    // A description begins its line.
                    for _ in 0..1 + random.below(2) {
                        out.push_str("\n/// What follows is described: \"as it is\"\n");
                    }
                }
            }
            (' ', true) => out.push_str(random.pick(&[" ", "  ", "\t", "   \t "])),
            ('·', true) => gap(&mut out, "", random),
            ('↵', true) => gap(&mut out, " ", random),
            ('⟨' | '⟩', true) => gap(&mut out, random.pick(&["", " "]), random),
            ('¶', true) => {
                if random.once_in(3) {
                    out.push_str(random.pick(&[",", " ,", ", "]));
                    gap(&mut out, "", random);
                } else {
                    line_end(&mut out, random);
                }
            }
            ('§', true) => line_end(&mut out, random),
            _ => out.push(letter),
        }
    }
    out
}

/// Nothing or a blank, or in their place line ends with comments.
fn gap(out: &mut String, blank: &str, random: &mut Random) {
    match random.below(5) {
        0 => line_end(out, random),
        1 => out.push_str(random.pick(&[" ", "\t", "  "])),
        _ => out.push_str(blank),
    }
}

/// At least one line end; comments behind the words and on lines of their own, empty lines.
fn line_end(out: &mut String, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        if random.once_in(3) {
            // A slash and a comment would be a description.
            let blanks: &[&str] = if out.ends_with('/') { &[" ", "\t"] } else { &["", " ", "   ", "\t"] };
            out.push_str(random.pick(blanks));
            out.push_str(random.pick(&COMMENTS));
            out.push_str(random.pick(&["", " ", "\t"]));
        }
        out.push_str(random.pick(&["\n", "\r\n", "\n\n", "\n \t\n"]));
        out.push_str(random.pick(&["", " ", "  ", "\t", "      "]));
    }
}

/// A program: a text with marks that checks and plans.
pub fn program(random: &mut Random) -> String {
    let mut writer = Writer { random, lets: Vec::new(), taught: false };
    writer.file()
}

struct Writer<'r> {
    random: &'r mut Random,
    /// What stands at the top of the file.
    lets: Vec<String>,
    /// There is a teacher.
    taught: bool,
}

impl Writer<'_> {
    fn one<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.random.below(among.len())]
    }

    fn maybe(&mut self, text: impl Into<String>) -> String {
        if self.random.once_in(2) { text.into() } else { String::new() }
    }

    /// A whole number in some way of writing it.
    fn digits(&mut self, value: u64) -> String {
        let plain = value.to_string();
        match self.random.below(5) {
            0 if value >= 1_000 => format!("{}_{}", &plain[..plain.len() - 3], &plain[plain.len() - 3..]),
            1 if value.is_multiple_of(100) && value > 0 => format!("{}k", value as f64 / 1_000.0),
            2 => format!("{value}.0"),
            3 if value > 9 => format!("{}e1", value as f64 / 10.0),
            _ => plain,
        }
    }

    /// A whole number as a field without a unit may say it.
    fn count(&mut self, value: u64) -> String {
        let digits = self.digits(value);
        match self.random.below(12) {
            0 => format!("({digits})"),
            1 if value > 1 => format!("{}↵+↵1", self.digits(value - 1)),
            2 if value.is_multiple_of(2) => format!("2↵*↵{}", self.digits(value / 2)),
            3 => format!("min(·{digits},↵{}·)", self.digits(value + 7)),
            4 => format!("max(·{},↵{digits}·)", self.digits(value / 2)),
            5 => {
                let name = format!("named_{}", self.lets.len());
                self.lets.push(format!("let {name} = {digits}"));
                name
            }
            6 => format!("{}↵/↵(·3·)", self.digits(3 * value)),
            _ => digits,
        }
    }

    /// A quantity with its unit.
    fn quantity(&mut self, value: u64, unit: &str) -> String {
        let digits = self.digits(value);
        if value == 1 { format!("{digits} {}", &unit[..unit.len() - 1]) } else { format!("{digits} {unit}") }
    }

    /// Statements in any order, as a body.
    fn body(&mut self, mut statements: Vec<String>) -> String {
        statements.retain(|statement| !statement.is_empty());
        for at in (1..statements.len()).rev() {
            statements.swap(at, self.random.below(at + 1));
        }
        self.in_order(statements)
    }

    fn in_order(&mut self, mut statements: Vec<String>) -> String {
        statements.retain(|statement| !statement.is_empty());
        format!("{{⟨{}⟩}}", statements.join("¶"))
    }

    fn file(&mut self) -> String {
        self.taught = self.random.once_in(3);
        let block = 1 + self.random.below(2) as u64;
        let blocks = 2 + self.random.below(2) as u64;
        let mut entries = vec![self.data(), self.model(block, blocks)];
        entries.push(format!("‖training base {}", self.training(false)));
        if self.taught {
            entries.push(self.teacher(block * blocks));
            entries.push(format!("‖training taught {}", self.training(true)));
        }
        let own = self.random.once_in(2);
        if own {
            entries.push(self.placement());
        }
        entries.push(self.schedule(blocks, block));
        entries.push(self.study(own, blocks));
        for at in (1..entries.len()).rev() {
            entries.swap(at, self.random.below(at + 1));
        }
        let mut top = std::mem::take(&mut self.lets);
        top.push("use std.placements (·pre,↵post,↵sandwich,↵deepnorm,↵keel,↵rezero·)".to_owned());
        top.push("use std.schedules (·joint,↵grow,↵grow_frozen·)".to_owned());
        let lead = if self.random.once_in(2) { "‖" } else { "" };
        format!("{lead}{}§{}§", top.join("§"), entries.join("§"))
    }

    fn data(&mut self) -> String {
        let documents = self.one(&[40u64, 60, 100]);
        let seed = self.random.below(3) as u64;
        let generate = match self.random.below(3) {
            0 => format!("generate tales(·documents:↵{},↵seed: {seed}·)", self.digits(documents)),
            1 => format!("generate tales(·{}·)", self.digits(documents)),
            _ => format!("generate tales(·seed: {seed},↵documents:↵{}·)", self.digits(documents)),
        };
        let context = self.one(&[8u64, 16, 24]);
        let layout = self.one(&["", "packed", "padded", "layout packed", "layout padded"]);
        let shard = self.one(&["", "shard 2k tokens", "shard 1_500 tokens"]);
        let holdout = self.one(&["", "holdout 10%", "holdout 3 documents"]);
        let context = format!("context {}", self.quantity(context, "tokens"));
        let tokenizer = self.maybe("tokenizer bytes");
        let document = self.maybe("document paragraph");
        let body = self.body(vec![generate, context, layout.into(), shard.into(), holdout.into(), tokenizer, document]);
        format!("‖data tales {body}")
    }

    fn model(&mut self, block: u64, blocks: u64) -> String {
        let heads = self.one(&[1u64, 2, 4]);
        let kv = self.one(&[1, heads]);
        let width = heads * self.one(&[4u64, 6, 8]);
        let ffn = format!("ffn {}({})", self.one(&["swiglu", "gelu"]), self.count(12));
        let norm = self.one(&[
            "",
            "norm rms(eps: 1e-6)",
            "norm rms(1E-5)",
            "norm layer(eps: 1e-6, bias: no)",
            "norm layer(·bias: yes·)",
        ]);
        let positions = self.one(&["", "positions rope(base: 10_000)", "positions none", "positions rope(1e4)"]);
        let tied = self.one(&["", "embedding own", "embedding tied", "head tied", "head own"]);
        let init = self.one(&["", "init normal(0.1)", "init normal(·0.02↵*↵sqrt(4096 / width)·)", "init normal(.1)"]);
        let placement = self.one(&[
            "",
            "placement pre",
            "placement attention: pre,↵ffn: post",
            "placement post in layers 1..1,↵pre in layers 2..9",
        ]);
        let placement = placement.replace("2..9", &format!("2..{}", block * blocks));
        let statements = vec![
            format!("layers {}", self.count(block * blocks)),
            if block > 1 || self.random.once_in(2) { format!("block {}", self.quantity(block, "layers")) } else { String::new() },
            format!("width {}", self.count(width)),
            format!("heads {}", self.count(heads)),
            if kv == heads && self.random.once_in(2) { String::new() } else { format!("kv {}", self.count(kv)) },
            ffn,
            norm.into(),
            self.maybe("qk_norm on"),
            positions.into(),
            tied.into(),
            init.into(),
            placement,
        ];
        let body = self.body(statements);
        match self.random.below(4) {
            0 => format!("‖model small {body}§‖model student = small with {{⟨init normal(0.2)⟩}}"),
            1 => {
                let body = body.replacen("ffn swiglu(", "ffn swiglu(size↵+↵", 1);
                format!("‖model sized(·size: 4·) {body}§‖model student = sized(·size: 6·)")
            }
            _ => format!("‖model student {body}"),
        }
    }

    fn teacher(&mut self, layers: u64) -> String {
        let model = match self.random.below(2) {
            0 => "model student".to_owned(),
            _ => format!("model student with {{⟨layers {}¶placement pre⟩}}", self.digits(2 * layers)),
        };
        let steps = self.one(&[12, 1]);
        let train = format!("train {} with base", self.quantity(steps, "steps"));
        let cache = self.one(&["", "cache none", "cache all", "cache top 4"]);
        let body = self.body(vec![model, train, cache.into()]);
        format!("‖teacher big {body}")
    }

    fn training(&mut self, taught: bool) -> String {
        let loss = match (taught, self.random.below(3)) {
            (true, 0) => "loss 0.7↵*↵kl(·big,↵temperature: 2·)↵+↵0.3↵*↵cross_entropy",
            (true, 1) => "loss kl(big)",
            (true, _) => "loss cross_entropy / 2↵+↵kl↵/↵2",
            (false, _) => "loss cross_entropy",
        };
        let optimizer = match self.random.below(4) {
            0 => "optimizer adamw(lr: 1e-3)",
            1 => "optimizer adamw(·3e-3,↵betas: (·0.9,↵0.95·),↵eps: 1E-8,↵decay: 0.1·)",
            2 => "optimizer adamw(·lr: .001,↵decay: 1%,↵decay_on: all·)",
            _ => "optimizer adamw(lr: 2↵*↵1e-3)",
        };
        let shape = self.one(&["constant", "linear", "linear to 1%", "cosine to 1e-5", "cosine", "wsd(decay: 20%)"]);
        let lr = match self.random.below(4) {
            0 => String::new(),
            1 => format!("lr {shape}"),
            2 => format!("lr warmup {}↵then {shape}", self.quantity(2, "steps")),
            _ => format!("lr warmup 10%↵then {shape}"),
        };
        let batch = self.one(&["batch 4 sequences", "batch 3 sequences in 2", "batch 1 sequence", "batch 4 sequences in 4"]);
        let clip = self.one(&["", "clip 0.5", "clip none", "clip 1e0"]);
        let precision = self.maybe("precision f32");
        self.body(vec![loss.into(), optimizer.into(), lr, batch.into(), clip.into(), precision])
    }

    fn stream(&mut self) -> String {
        self.one(&["x", "norm(x)", "norm(·x↵/↵2·)", "norm(x)↵/↵sqrt(l)", "2 * norm(x)", "stop(x) + x"]).to_owned()
    }

    fn wiring(&mut self) -> String {
        let inside = self.stream();
        match self.random.below(8) {
            0 => format!("norm(·x↵+↵f(·{inside}·)·)"),
            1 => format!("x↵+↵norm(f({inside}))"),
            2 => format!("x↵+↵gain(1e-4)↵*↵f({inside})"),
            3 => format!("x↵+↵learned(0.5) * f({inside})"),
            4 => format!("alpha↵*↵x↵+↵f({inside})"),
            5 => format!("x - f({inside})"),
            6 => format!("{{⟨let y = {inside}¶x↵+↵f(y)⟩}}"),
            _ => format!("x↵+↵f({inside})"),
        }
    }

    fn placement(&mut self) -> String {
        let main = match self.random.below(4) {
            0 => {
                let norm = self.one(&["", ",↵norm: qkv"]);
                format!("layer {{⟨let y = x↵+↵attention(·x{norm}·)¶let z = norm(y)¶z↵+↵ffn(z)⟩}}")
            }
            1 => {
                let (a, b) = (self.wiring(), self.wiring());
                let condition = self.one(&["l == 1", "l <= L↵/↵2", "step < 4", "l != 2", "L_active > 1"]);
                format!("sublayer {a} when {condition},↵otherwise {b}")
            }
            _ => format!("sublayer {}", self.wiring()),
        };
        let entry = self.maybe("entry norm(x)");
        let boundary = self.one(&["", "boundary norm(x)", "boundary x↵+↵stop(·norm(x)↵-↵x·)"]);
        let init = self.one(&["", "init (·o,↵down·)↵*↵(2 * L) ^ -0.5", "init q↵/↵2,↵(v, up)↵*↵alpha"]);
        let exit = self.maybe("exit norm(x)");
        let body = self.body(vec![main, entry, boundary.into(), init.into(), exit]);
        format!("‖placement mine(·alpha: 0.5·) {body}")
    }

    /// A schedule of so many blocks of so many layers.
    fn schedule(&mut self, blocks: u64, block: u64) -> String {
        let mut statements = vec![if block == 1 || self.random.once_in(2) {
            "start with 1 block".to_owned()
        } else {
            format!("start with {block} layers")
        }];
        let (mut step, mut depth, mut frozen) = (0, 1, false);
        for _ in 0..1 + self.random.below(3) {
            let length = 3 + self.random.below(4) as u64;
            step += length;
            let moment = match self.random.below(3) {
                0 => format!("after {}", self.quantity(length, "steps")),
                _ => format!("at step {}", self.digits(step)),
            };
            let mut actions = Vec::new();
            if depth < blocks && self.random.below(3) > 0 {
                depth += 1;
                let how = self.one(&["", " copying last", " copying all", " at top", " as identity"]);
                actions.push(format!("grow block{how}"));
                if self.random.once_in(3) {
                    actions.push("freeze prefix".to_owned());
                    frozen = true;
                }
            }
            if frozen && self.random.once_in(2) {
                actions.push("thaw prefix".to_owned());
                frozen = false;
            }
            let more = [
                "reset optimizer",
                "restart lr",
                "rewarm lr over 2 steps",
                "rewind data",
                "fresh data",
                "set lr 1e-3",
                "set batch 2 sequences",
            ];
            actions.push(self.one(&more).to_owned());
            statements.push(format!("{moment}: {}", actions.join(",↵")));
        }
        let end = 2 + self.random.below(4) as u64;
        statements.push(match self.random.below(2) {
            0 => format!("end after {}", self.quantity(end, "steps")),
            _ => format!("end at step {}", self.digits(step + end)),
        });
        let body = self.in_order(statements);
        format!("‖schedule staged {body}")
    }

    fn study(&mut self, own: bool, _blocks: u64) -> String {
        let mut placements = vec![self.one(&["pre", "sandwich"]), self.one(&["post", "keel", "deepnorm", "rezero"])];
        if own {
            placements.push("mine");
        }
        let (long, short) = (self.quantity(12, "steps"), self.quantity(4, "steps"));
        let schedules = [
            format!("joint(·steps:↵{long}·)"),
            format!("grow(phase: {short})"),
            "staged".to_owned(),
            format!("grow_frozen(·{short}·)"),
        ];
        let schedules: Vec<&String> = schedules.iter().take(2 + self.random.below(3)).collect();
        let lr = self.random.once_in(3);
        let (low, high) = (self.one(&["1e-3", "0.001", "1E-3"]), "1e-2");
        let extra = if lr { format!(",↵lr: {low}") } else { String::new() };
        let [first, second] = [placements[0], placements[1]];
        let arm = |placement: &str, schedule: &str| format!("[·{placement},↵{schedule}{extra}·]");
        let written: Vec<&str> = schedules.iter().map(|schedule| schedule.as_str()).collect();
        let training = if self.taught && self.random.once_in(2) { "taught" } else { "base" };
        let mut statements = vec![
            "data tales".to_owned(),
            "model student".to_owned(),
            format!("training {training}"),
            format!("vary placement over {}", placements.join(",↵")),
            format!("vary schedule over {}", written.join(",↵")),
            self.one(&["", "seeds 2", "seeds [1, 7]", "seeds 1"]).to_owned(),
            format!("measure validation_ce every {}", self.quantity(4, "steps")),
            self.one(&[
                "",
                "probe boundary_rms at every grow and at end",
                "probe block_removal at end on 2 sequences of 8 tokens",
            ])
            .to_owned(),
        ];
        if lr {
            let path = self.one(&["training.optimizer.lr", "optimizer.lr"]);
            statements.push(format!("vary {path} over {low},↵{high}"));
            if self.random.once_in(2) {
                statements.push(format!("except [·{second},↵lr: {high}·]"));
            }
        }
        if self.random.once_in(2) {
            statements.push(format!("‖control longer: {} matched to {} on tokens", arm(second, "joint"), arm(first, "grow")));
        }
        if self.random.once_in(2) {
            statements.push(format!("‖control bigger: {} with {{⟨clip 0.25⟩}}", arm(first, "grow")));
        }
        let ce = |placement: &str, schedule: &str| format!("validation_ce{}", arm(placement, schedule));
        statements.push(format!("‖claim better: {}↵<↵{}", ce(second, "grow"), ce(first, "grow")));
        if self.random.once_in(2) {
            statements.push(format!("‖claim alike:   {}↵~↵{} within 0.01", ce(first, "joint"), ce(second, "joint")));
        }
        if self.random.once_in(2) {
            let sides = (ce(first, "grow"), ce(second, "grow"), ce(first, "joint"), ce(second, "joint"));
            statements.push(format!("claim interact: (·{}↵-↵{}·)↵>↵2↵*↵(·{}↵-↵{}·)", sides.0, sides.1, sides.2, sides.3));
        }
        if self.random.once_in(2) {
            statements.push(format!("claim cross: {} overtakes {} after grow 1", ce(first, "grow"), ce(second, "grow")));
        }
        statements.push(self.one(&["", "report ablation(·rows: placement,↵columns: schedule·)"]).to_owned());
        let body = self.body(statements);
        format!("‖study s {body}")
    }
}
