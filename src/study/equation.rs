//! Equations of a placement: expressions over the residual stream, with scalars that depend on layer, depth and step.
//!
//! Owns the algebra alone. The engine turns a [`Stream`] into tensor operations, `budget` counts its parameters; both walk it in
//! the same order (depth first, left to right), which is also the order in which parameters are numbered.

use serde::{Deserialize, Serialize};

/// A number that may depend on where and when it is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Scalar {
    /// A constant.
    Number(f64),
    /// `l`: the layer's place in the stack, from 1.
    Layer,
    /// `L`: the final depth.
    Depth,
    /// `L_active`: the depth now.
    ActiveDepth,
    /// `step`: steps done in this run.
    Step,
    /// Sum.
    Add(Box<Scalar>, Box<Scalar>),
    /// Difference.
    Subtract(Box<Scalar>, Box<Scalar>),
    /// Product.
    Multiply(Box<Scalar>, Box<Scalar>),
    /// Quotient.
    Divide(Box<Scalar>, Box<Scalar>),
    /// Power.
    Power(Box<Scalar>, Box<Scalar>),
    /// Square root.
    Sqrt(Box<Scalar>),
    /// The smaller.
    Min(Box<Scalar>, Box<Scalar>),
    /// The larger.
    Max(Box<Scalar>, Box<Scalar>),
}

/// Where and when a [`Scalar`] is evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// `l`, from 1; 0 outside layers.
    pub layer: usize,
    /// `L`.
    pub depth: usize,
    /// `L_active`.
    pub active_depth: usize,
    /// Steps done.
    pub step: u64,
}

impl Scalar {
    /// How many numbers and operations it is made of.
    pub fn terms(&self) -> usize {
        1 + match self {
            Scalar::Number(_) | Scalar::Layer | Scalar::Depth | Scalar::ActiveDepth | Scalar::Step => 0,
            Scalar::Sqrt(inner) => inner.terms(),
            Scalar::Add(a, b)
            | Scalar::Subtract(a, b)
            | Scalar::Multiply(a, b)
            | Scalar::Divide(a, b)
            | Scalar::Power(a, b)
            | Scalar::Min(a, b)
            | Scalar::Max(a, b) => a.terms() + b.terms(),
        }
    }
    /// Its value at a moment.
    pub fn at(&self, moment: &Moment) -> f64 {
        match self {
            Scalar::Number(value) => *value,
            Scalar::Layer => moment.layer as f64,
            Scalar::Depth => moment.depth as f64,
            Scalar::ActiveDepth => moment.active_depth as f64,
            Scalar::Step => moment.step as f64,
            Scalar::Add(a, b) => a.at(moment) + b.at(moment),
            Scalar::Subtract(a, b) => a.at(moment) - b.at(moment),
            Scalar::Multiply(a, b) => a.at(moment) * b.at(moment),
            Scalar::Divide(a, b) => a.at(moment) / b.at(moment),
            Scalar::Power(a, b) => libm::pow(a.at(moment), b.at(moment)),
            Scalar::Sqrt(a) => libm::sqrt(a.at(moment)),
            Scalar::Min(a, b) => a.at(moment).min(b.at(moment)),
            Scalar::Max(a, b) => a.at(moment).max(b.at(moment)),
        }
    }
    /// Whether it changes from step to step.
    pub fn depends_on_step(&self) -> bool {
        match self {
            Scalar::Step => true,
            Scalar::Number(_) | Scalar::Layer | Scalar::Depth | Scalar::ActiveDepth => false,
            Scalar::Sqrt(a) => a.depends_on_step(),
            Scalar::Add(a, b)
            | Scalar::Subtract(a, b)
            | Scalar::Multiply(a, b)
            | Scalar::Divide(a, b)
            | Scalar::Power(a, b)
            | Scalar::Min(a, b)
            | Scalar::Max(a, b) => a.depends_on_step() || b.depends_on_step(),
        }
    }
}

/// How two scalars compare in `when`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
}

/// `when l == 1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// How they compare.
    pub comparison: Comparison,
    /// Left side.
    pub left: Scalar,
    /// Right side.
    pub right: Scalar,
}

impl Condition {
    /// Whether it may change from step to step.
    pub fn depends_on_step(&self) -> bool {
        self.left.depends_on_step() || self.right.depends_on_step()
    }
    /// Whether it holds at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        let (left, right) = (self.left.at(moment), self.right.at(moment));
        match self.comparison {
            Comparison::Less => left < right,
            Comparison::LessEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterEqual => left >= right,
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
        }
    }
}

/// What is computed inside a layer besides wiring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sublayer {
    /// Grouped-query attention.
    Attention {
        /// Queries, keys and values are normalised per head, with weights of their own (HybridNorm, 2503.04598).
        qkv_norm: bool,
    },
    /// The feed-forward network.
    Ffn,
}

/// An expression whose value is a stream of shape (tokens, width).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stream {
    /// `x`: the residual stream.
    X,
    /// `x0`: the output of the embedding (after `entry`).
    Embedded,
    /// A `let` of the equation, by its index.
    Bound(usize),
    /// `norm(…)` with weights of its own.
    Norm {
        /// Which norm of the equation, from 0.
        slot: usize,
        /// What is normalised.
        input: Box<Stream>,
    },
    /// `f(…)`, `attention(…)` or `ffn(…)`.
    Sublayer {
        /// Which.
        sublayer: Sublayer,
        /// What it reads.
        input: Box<Stream>,
    },
    /// `gain(start) * …`: a learned factor per channel.
    Gain {
        /// Which gain of the equation, from 0.
        slot: usize,
        /// Its first value.
        start: Scalar,
        /// What is scaled.
        input: Box<Stream>,
    },
    /// `learned(start) * …`: a learned scalar.
    Learned {
        /// Which learned scalar of the equation, from 0.
        slot: usize,
        /// Its first value.
        start: Scalar,
        /// What is scaled.
        input: Box<Stream>,
    },
    /// A factor that is not learned.
    Scale {
        /// The factor.
        factor: Scalar,
        /// What is scaled.
        input: Box<Stream>,
    },
    /// Sum.
    Add(Box<Stream>, Box<Stream>),
    /// Difference.
    Subtract(Box<Stream>, Box<Stream>),
    /// `stop(…)`: the same value, no gradient.
    Stop(Box<Stream>),
}

impl Stream {
    /// The same expression, each part replaced by what `replace` makes of it once its inputs have been.
    pub fn replaced(&self, replace: &impl Fn(Stream) -> Stream) -> Stream {
        let inner = |input: &Stream| Box::new(input.replaced(replace));
        replace(match self {
            Stream::X | Stream::Embedded | Stream::Bound(_) => self.clone(),
            Stream::Norm { slot, input } => Stream::Norm { slot: *slot, input: inner(input) },
            Stream::Sublayer { sublayer, input } => Stream::Sublayer { sublayer: *sublayer, input: inner(input) },
            Stream::Gain { slot, start, input } => Stream::Gain { slot: *slot, start: start.clone(), input: inner(input) },
            Stream::Learned { slot, start, input } => Stream::Learned { slot: *slot, start: start.clone(), input: inner(input) },
            Stream::Scale { factor, input } => Stream::Scale { factor: factor.clone(), input: inner(input) },
            Stream::Add(left, right) => Stream::Add(inner(left), inner(right)),
            Stream::Subtract(left, right) => Stream::Subtract(inner(left), inner(right)),
            Stream::Stop(input) => Stream::Stop(inner(input)),
        })
    }
    /// This part with its factor or start replaced by what `number` makes of it.
    pub fn with_scalar(self, number: impl Fn(&Scalar) -> Scalar) -> Stream {
        match self {
            Stream::Gain { slot, start, input } => Stream::Gain { slot, start: number(&start), input },
            Stream::Learned { slot, start, input } => Stream::Learned { slot, start: number(&start), input },
            Stream::Scale { factor, input } => Stream::Scale { factor: number(&factor), input },
            other => other,
        }
    }
    fn changing(&self, found: &mut Vec<Scalar>) {
        match self {
            Stream::X | Stream::Embedded | Stream::Bound(_) => {}
            Stream::Norm { input, .. } | Stream::Sublayer { input, .. } | Stream::Stop(input) => input.changing(found),
            Stream::Gain { start: number, input, .. }
            | Stream::Learned { start: number, input, .. }
            | Stream::Scale { factor: number, input } => {
                found.extend((!matches!(number, Scalar::Number(_))).then(|| number.clone()));
                input.changing(found);
            }
            Stream::Add(left, right) | Stream::Subtract(left, right) => {
                left.changing(found);
                right.changing(found);
            }
        }
    }
    /// What `norm none` makes of this part: a norm is what it reads.
    pub fn bare(self) -> Stream {
        match self {
            Stream::Norm { input, .. } => *input,
            Stream::Sublayer { sublayer: Sublayer::Attention { .. }, input } => {
                Stream::Sublayer { sublayer: Sublayer::Attention { qkv_norm: false }, input }
            }
            other => other,
        }
    }
}

fn keeps_x(stream: &Stream, bound: &[bool]) -> bool {
    match stream {
        Stream::X => true,
        Stream::Embedded | Stream::Sublayer { .. } => false,
        Stream::Bound(index) => bound.get(*index).copied().unwrap_or(false),
        Stream::Norm { input, .. }
        | Stream::Gain { input, .. }
        | Stream::Learned { input, .. }
        | Stream::Scale { input, .. }
        | Stream::Stop(input) => keeps_x(input, bound),
        Stream::Add(left, right) | Stream::Subtract(left, right) => keeps_x(left, bound) || keeps_x(right, bound),
    }
}

/// A straight-line program: bindings in order, then the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Equation {
    /// `let`s; each may use those before it.
    pub bindings: Vec<Stream>,
    /// The new residual stream.
    pub result: Stream,
}

impl Equation {
    /// Whether some of `x` comes out on a way that leads through no sublayer.
    pub fn keeps_x(&self) -> bool {
        let mut bound = Vec::new();
        for binding in &self.bindings {
            bound.push(keeps_x(binding, &bound));
        }
        keeps_x(&self.result, &bound)
    }
    /// Its factors and first values that are no constants.
    pub fn changing(&self) -> Vec<Scalar> {
        let mut found = Vec::new();
        self.bindings.iter().chain([&self.result]).for_each(|stream| stream.changing(&mut found));
        found
    }
    /// The same equation, [`Stream::replaced`] throughout.
    pub fn replaced(&self, replace: &impl Fn(Stream) -> Stream) -> Equation {
        let bindings = self.bindings.iter().map(|binding| binding.replaced(replace)).collect();
        Equation { bindings, result: self.result.replaced(replace) }
    }
}

/// `A when c, B when d, otherwise C`: slots are numbered within each branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Branches {
    /// Tried in order.
    pub cases: Vec<(Condition, Equation)>,
    /// Taken when none holds.
    pub otherwise: Equation,
}

impl Branches {
    /// An equation without conditions.
    pub fn always(equation: Equation) -> Self {
        Self { cases: Vec::new(), otherwise: equation }
    }
    /// Factors that are no constants, case by case; those of the last, which has no condition, at the end.
    pub fn changing(&self) -> Vec<Vec<Scalar>> {
        self.cases.iter().map(|(_, equation)| equation).chain([&self.otherwise]).map(Equation::changing).collect()
    }
    /// The equation in force at a moment.
    pub fn at(&self, moment: &Moment) -> &Equation {
        self.case_at(moment).map_or(&self.otherwise, |case| &self.cases[case].1)
    }
    /// The case in force at a moment; `None`: the last, which has no condition.
    pub fn case_at(&self, moment: &Moment) -> Option<usize> {
        self.cases.iter().position(|(condition, _)| condition.holds(moment))
    }
    /// Whether the step decides which case is in force.
    pub fn depends_on_step(&self) -> bool {
        self.cases.iter().any(|(condition, _)| condition.depends_on_step())
    }
}
