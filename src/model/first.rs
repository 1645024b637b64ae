//! First values of parameters: functions of seed and name alone.

use rand_distr::{Distribution, StandardNormal};

use crate::budget::params::{FirstValue, ParamSpec, TeacherTensor};
use crate::study::seed;

/// Where first values that are not drawn come from.
pub trait Teacher {
    /// A tensor of the teacher, or why there is none.
    fn tensor(&self, tensor: TeacherTensor) -> Result<Vec<f32>, String>;
    /// A tensor by the name of a parameter from a file of the study's folder, whose weights have that hash; or why there is none.
    fn file(&self, file: &str, content: Option<&str>, name: &str) -> Result<Vec<f32>, String>;
}

/// Values of a new parameter, in row-major order. `identity`: output projections are zero, so that a layer begins as if absent.
pub fn first_values(seed: u64, spec: &ParamSpec, identity: bool, teacher: &dyn Teacher) -> Result<Vec<f32>, String> {
    let elements = spec.elements() as usize;
    if identity && (spec.name.ends_with(".attention.o") || spec.name.ends_with(".ffn.down")) {
        return Ok(vec![0.0; elements]);
    }
    let values = match &spec.first {
        FirstValue::Normal { std, factor } => {
            let mut stream = seed::stream(seed, &format!("parameter/{}", spec.name));
            (0..elements)
                .map(|_| {
                    let draw: f64 = StandardNormal.sample(&mut stream);
                    (draw * std * factor) as f32
                })
                .collect()
        }
        FirstValue::Constant(value) => vec![*value as f32; elements],
        FirstValue::Teacher(tensor) => teacher.tensor(*tensor)?,
        FirstValue::File { file, content } => teacher.file(file, content.as_deref(), &spec.name)?,
    };
    if values.len() == elements {
        Ok(values)
    } else {
        Err(format!("`{}` has {elements} elements, but its first value has {}", spec.name, values.len()))
    }
}
