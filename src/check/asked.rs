//! Arms that are asked for from outside a file: `[post, lr: 3e-3]` means there what it means in a claim.
//!
//! Owns no rule of its own. The axes are written down as a study's text has them, and read as that is: `arms` decides. Knows no plan.

use std::collections::BTreeMap;

use super::Checker;
use super::arms::{Chosen, Field};
use super::axes::Varied;
use super::load::Unit;
use crate::diagnostic::{Diagnostic, Problems};
use crate::source::{Source, Sources};
use crate::study::{Arm, Axis, Study};
use crate::syntax::ast::{Entry, Expr, ExprKind};
use crate::syntax::parse;

/// The arms that values or a name stand for, by their indices in [`Study::arms`], at least one: all that have these values, or the control of
/// that name. Brackets may be left out. Errors say what is wrong, without a full stop.
pub fn arms(study: &Study, said: &str) -> Result<Vec<usize>, String> {
    if let Some(arm) = study.arms.iter().position(|arm| arm.name == said) {
        return Ok(vec![arm]);
    }
    let said = said.trim();
    let listed = if said.starts_with('[') { said.to_owned() } else { format!("[{said}]") };
    let mut sources = Sources::default();
    let mut units = Vec::new();
    for text in [axes(study), format!("let arm = {listed}\n")] {
        let file = sources.add(Source::new("arms", text.as_str()));
        let (tree, problems) = parse(file, &text);
        if let Some(problem) = problems.first() {
            return Err(in_words(problem));
        }
        units.push(Unit { file, tree, has_syntax_errors: false, uses: Vec::new() });
    }
    let checker = Checker::new(&sources, &units, Problems::default());
    let chosen = choose(&checker, study, &units[1].tree.entries);
    chosen.ok_or_else(|| match checker.said.borrow().list.iter().next() {
        Some(problem) => in_words(problem),
        None => "expected values in `[…]`".to_owned(),
    })
}

/// A study of nothing but axes.
fn axes(study: &Study) -> String {
    let axis = |axis: &Axis| {
        let values: Vec<&str> = axis.values.iter().map(|value| value.text.as_str()).collect();
        format!("  vary ({}) over {}\n", axis.fields.join(", "), values.join(", "))
    };
    format!("study arms {{\n{}}}\n", study.axes.iter().map(axis).collect::<String>())
}

fn choose<'a>(checker: &Checker<'a>, study: &Study, said: &'a [Entry]) -> Option<Vec<usize>> {
    let [Entry::Let(said)] = said else { return None };
    let [Expr { kind: ExprKind::List(arguments), span }] = said.value.parts.as_slice() else { return None };
    let declared = checker.names.first()?.own(0).next()?;
    let record = checker.alone(declared)?;
    let axes: Vec<Varied<'a>> = checker.axes(&record, &mut 0).into_iter().collect::<Option<_>>()?;
    let mut field = Field::new(checker, &record, &axes)?;
    let is_control = |arm: &Arm| arm.control.is_some();
    let values =
        |arm: &'_ Arm| study.axes.iter().map(|axis| arm.values.get(&axis.name).cloned()).collect::<Option<Vec<String>>>();
    let arms = study.arms.iter().enumerate().filter(|(_, arm)| !is_control(arm));
    let arms: BTreeMap<Vec<String>, usize> = arms.filter_map(|(index, arm)| Some((values(arm)?, index))).collect();
    let of_cell = |cell: &[usize]| {
        let labels = cell.iter().zip(&study.axes).map(|(value, axis)| Some(axis.values.get(*value)?.label.clone()));
        labels.collect::<Option<Vec<String>>>().and_then(|labels| arms.get(&labels).copied())
    };
    let cells: Vec<Option<usize>> = field.cells.iter().map(|(cell, _)| of_cell(cell)).collect();
    for (cell, arm) in field.cells.iter_mut().zip(&cells) {
        cell.1 = arm.is_none().then_some(record.name_span);
    }
    let names: Vec<(usize, &str)> =
        study.arms.iter().enumerate().filter(|(_, arm)| is_control(arm)).map(|(index, arm)| (index, arm.name.as_str())).collect();
    field.controls = names.iter().map(|(_, name)| (*name, record.name_span)).collect();
    Some(match field.choose(checker, arguments, *span)? {
        Chosen::Cells(chosen) => chosen.into_iter().filter_map(|cell| cells[cell]).collect(),
        Chosen::Control(control) => vec![names[control].0],
    })
}

/// `no axis has the value `jiont`; did you mean `joint`?`
fn in_words(problem: &Diagnostic) -> String {
    let words: Vec<&str> = std::iter::once(&problem.message).chain(&problem.hints).map(String::as_str).collect();
    words.join("; ")
}
