//! Evaluates an equation of a placement: one operation per node of its expressions, in the order written.

use super::network::Network;
use crate::budget::params::slot_name;
use crate::study::equation::{Equation, Moment, Stream, Sublayer};
use crate::study::{Ffn, NormKind, Positions};
use crate::tensor::{
    AttentionWeights, Device, Fault, FfnWeights, Heads, Matrix, NoneTape, NormWeights, Operations, Real, Rows, Tape,
};

/// Where an equation is evaluated.
pub(super) struct Place<'a, E: Real, D: Device<E>> {
    /// Names of the equation's own norms, gains and learned scalars begin with this.
    pub own: &'a str,
    /// Names of sublayers' weights begin with this: `layers.3`.
    pub layer: &'a str,
    pub moment: Moment,
    pub rows: &'a Rows<E, D>,
    /// `x`.
    pub x: &'a Matrix<E, D>,
    /// `x0`.
    pub embedded: &'a Matrix<E, D>,
}

impl<E: Real, D: Device<E>, O: Operations<E, D>> Network<'_, E, D, O> {
    /// The equation's result.
    pub(super) fn evaluate<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        equation: &Equation,
        place: &Place<'_, E, D>,
    ) -> Result<Matrix<E, D>, Fault<D>> {
        let mut bound = Vec::with_capacity(equation.bindings.len());
        for binding in &equation.bindings {
            let value = self.stream(tape, binding, place, &bound)?;
            bound.push(value);
        }
        self.stream(tape, &equation.result, place, &bound)
    }

    fn stream<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        stream: &Stream,
        place: &Place<'_, E, D>,
        bound: &[Matrix<E, D>],
    ) -> Result<Matrix<E, D>, Fault<D>> {
        let ops = O::default();
        match stream {
            Stream::X => Ok(place.x.clone()),
            Stream::Embedded => Ok(place.embedded.clone()),
            Stream::Bound(index) => Ok(bound[*index].clone()),
            Stream::Norm { slot, input } => {
                let input = self.stream(tape, input, place, bound)?;
                ops.norm(tape, &input, &self.norm(&slot_name(place.own, "norm", *slot)))
            }
            Stream::Sublayer { sublayer, input } => {
                let input = self.stream(tape, input, place, bound)?;
                match sublayer {
                    Sublayer::Attention { qkv_norm } => {
                        ops.attention(tape, &input, &self.attention(place.layer, *qkv_norm), place.rows)
                    }
                    Sublayer::Ffn => ops.ffn(tape, &input, &self.ffn(place.layer)),
                }
            }
            Stream::Gain { slot, input, .. } => {
                let input = self.stream(tape, input, place, bound)?;
                ops.gain(tape, &input, self.params.expect_vector(&slot_name(place.own, "gain", *slot)))
            }
            Stream::Learned { slot, input, .. } => {
                let input = self.stream(tape, input, place, bound)?;
                ops.learned(tape, &input, self.params.expect_vector(&slot_name(place.own, "learned", *slot)))
            }
            Stream::Scale { factor, input } => {
                let input = self.stream(tape, input, place, bound)?;
                ops.scale(tape, &input, factor.at(&place.moment))
            }
            Stream::Add(left, right) => {
                let [left, right] = self.sides(tape, left, right, place, bound)?;
                ops.add(tape, &left, &right)
            }
            Stream::Subtract(left, right) => {
                let [left, right] = self.sides(tape, left, right, place, bound)?;
                ops.subtract(tape, &left, &right)
            }
            Stream::Stop(input) => ops.stop(&self.stream(&mut NoneTape, input, place, bound)?),
        }
    }

    /// Both sides of a sum. Two names may stand for one tensor (`x + x`, or `x + x0` in the first layer), which operations must not see.
    fn sides<T: Tape<E, D>>(
        &self,
        tape: &mut T,
        left: &Stream,
        right: &Stream,
        place: &Place<'_, E, D>,
        bound: &[Matrix<E, D>],
    ) -> Result<[Matrix<E, D>; 2], Fault<D>> {
        let name = |stream: &Stream| matches!(stream, Stream::X | Stream::Embedded | Stream::Bound(_));
        let both = name(left) && name(right);
        let left = self.stream(tape, left, place, bound)?;
        let right = self.stream(tape, right, place, bound)?;
        let right = if both { O::default().scale(tape, &right, 1.0)? } else { right };
        Ok([left, right])
    }

    fn norm(&self, name: &str) -> NormWeights<'_, E, D> {
        NormWeights {
            centered: matches!(self.model.norm.kind, NormKind::Layer { .. }),
            eps: self.model.norm.eps,
            weight: self.params.expect_vector(name),
            bias: self.params.vector(&format!("{name}.bias")),
        }
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
            q_norm: qk_norm.then(|| self.norm(&name("q_norm"))),
            k_norm: qk_norm.then(|| self.norm(&name("k_norm"))),
            v_norm: qkv_norm.then(|| self.norm(&name("v_norm"))),
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
