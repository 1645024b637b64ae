//! Compiles an equation of a placement to a program: one instruction per node of its expressions, in the order written.

use super::network::Network;
use crate::budget::params::slot_name;
use crate::study::equation::{Equation, Moment, Stream, Sublayer};
use crate::study::{Ffn, NormKind, Positions};
use crate::tensor::{
    Action, AttentionWeights, Device, FfnWeights, Heads, Instruction, NormRule, NormWeights, Operations, Program, Real,
};

/// Where an equation stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    /// Names of the equation's own norms, gains and learned scalars begin with this.
    pub own: &'p str,
    /// Names of sublayers' weights begin with this: `layers.3`.
    pub layer: &'p str,
    pub moment: Moment,
}

/// A program under construction: equations one after another, each reading the result of the one before as its `x`.
pub(super) struct Compiler<'n, 'a, E: Real, D: Device<E>, O> {
    network: &'n Network<'a, E, D, O>,
    program: Program<'n, E, D>,
    silent: bool,
}

impl<'n, 'a, E: Real, D: Device<E>, O: Operations<E, D>> Compiler<'n, 'a, E, D, O> {
    pub(super) fn new(network: &'n Network<'a, E, D, O>) -> Self {
        Self { network, program: Program { instructions: Vec::new(), result: Program::<E, D>::X }, silent: false }
    }

    /// Whether what sublayers say becomes 0.
    pub(super) fn silent(self, silent: bool) -> Self {
        Self { silent, ..self }
    }

    /// Adds an equation on top.
    pub(super) fn equation(mut self, equation: &Equation, place: Place<'_>) -> Self {
        let mut bound = Vec::with_capacity(equation.bindings.len());
        for binding in &equation.bindings {
            let value = self.stream(binding, place, &bound, false);
            bound.push(value);
        }
        self.program.result = self.stream(&equation.result, place, &bound, false);
        self
    }

    pub(super) fn finish(self) -> Program<'n, E, D> {
        self.program
    }

    /// The value of a stream; `stopped`: it stands under a `stop`.
    fn stream(&mut self, stream: &Stream, place: Place<'_>, bound: &[usize], stopped: bool) -> usize {
        let network = self.network;
        let action = match stream {
            // The result so far is `x` until this equation is complete.
            Stream::X => return self.program.result,
            Stream::Embedded => return Program::<E, D>::EMBEDDED,
            Stream::Bound(index) => return bound[*index],
            Stream::Norm { slot, input } => {
                let input = self.stream(input, place, bound, stopped);
                match network.norm(&slot_name(place.own, "norm", *slot)) {
                    Some(weights) => Action::Norm(input, weights),
                    None => return input,
                }
            }
            Stream::Sublayer { sublayer, input } => {
                let input = self.stream(input, place, bound, stopped);
                match sublayer {
                    _ if self.silent => Action::Scale(input, 0.0),
                    Sublayer::Attention { qkv_norm } => Action::Attention(input, network.attention(place.layer, *qkv_norm)),
                    Sublayer::Ffn => Action::Ffn(input, network.ffn(place.layer)),
                }
            }
            Stream::Gain { slot, input, .. } => {
                let gain = network.params.expect_vector(&slot_name(place.own, "gain", *slot));
                Action::Gain(self.stream(input, place, bound, stopped), gain)
            }
            Stream::Learned { slot, input, .. } => {
                let factor = network.params.expect_vector(&slot_name(place.own, "learned", *slot));
                Action::Learned(self.stream(input, place, bound, stopped), factor)
            }
            Stream::Scale { factor, input } => Action::Scale(self.stream(input, place, bound, stopped), factor.at(&place.moment)),
            Stream::Add(left, right) => {
                let left = self.stream(left, place, bound, stopped);
                Action::Add(left, self.stream(right, place, bound, stopped))
            }
            Stream::Subtract(left, right) => {
                let left = self.stream(left, place, bound, stopped);
                Action::Subtract(left, self.stream(right, place, bound, stopped))
            }
            Stream::Stop(input) => Action::Stop(self.stream(input, place, bound, true)),
        };
        self.program.instructions.push(Instruction { action, stopped });
        self.program.instructions.len() + 1
    }
}

impl<E: Real, D: Device<E>, O: Operations<E, D>> Network<'_, E, D, O> {
    /// `None`: the model's norm is nothing.
    fn norm(&self, name: &str) -> Option<NormWeights<'_, E, D>> {
        let eps = self.model.norm.eps;
        let rule = match self.model.norm.kind {
            NormKind::Rms => NormRule::Root { centered: false, eps },
            NormKind::Layer { .. } => NormRule::Root { centered: true, eps },
            NormKind::Dyt { .. } => NormRule::Tanh(self.params.expect_vector(&format!("{name}.alpha"))),
            NormKind::None => return None,
        };
        let bias = self.params.vector(&format!("{name}.bias"));
        Some(NormWeights { rule, weight: self.params.expect_vector(name), bias })
    }

    fn attention(&self, layer: &str, qkv_norm: bool) -> AttentionWeights<'_, E, D> {
        let name = |short: &str| format!("{layer}.attention.{short}");
        let matrix = |short: &str| self.params.matrix(&name(short));
        let heads = Heads { queries: self.model.heads, keys: self.model.kv_heads, width: self.model.head_dim };
        let qk_norm = qkv_norm || self.model.qk_norm;
        AttentionWeights {
            heads,
            q: matrix("q"),
            k: matrix("k"),
            v: matrix("v"),
            o: matrix("o"),
            q_norm: qk_norm.then(|| self.norm(&name("q_norm"))).flatten(),
            k_norm: qk_norm.then(|| self.norm(&name("k_norm"))).flatten(),
            v_norm: qkv_norm.then(|| self.norm(&name("v_norm"))).flatten(),
        }
    }

    fn ffn(&self, layer: &str) -> FfnWeights<'_, E, D> {
        let matrix = |short: &str| self.params.matrix(&format!("{layer}.ffn.{short}"));
        FfnWeights {
            gate: matches!(self.model.ffn, Ffn::SwiGlu { .. }).then(|| matrix("gate")),
            up: matrix("up"),
            down: matrix("down"),
        }
    }

    /// Base and head width, where positions are told by rotation.
    pub fn rope(&self) -> Option<(f64, usize)> {
        match self.model.positions {
            Positions::Rope { base } => Some((base, self.model.head_dim)),
            Positions::None => None,
        }
    }
}
