//! Who appears in which panel, under which name and colour: one panel for each schedule, one colour for each placement.

use crate::report::reading::Reading;
use crate::report::tables::{placements, schedules};

/// How many colours there are; more series than that share them.
pub const COLOURS: usize = 8;

/// A panel's arms.
pub struct Group {
    /// The schedule, or nothing where it does not vary.
    pub title: String,
    /// Who is in it.
    pub members: Vec<Member>,
}

/// An arm in a panel.
pub struct Member {
    /// Index into the study's arms.
    pub arm: usize,
    /// What is left of its name within the panel.
    pub label: String,
    /// Below [`COLOURS`].
    pub colour: usize,
}

/// All arms, by schedule.
pub fn groups(reading: &Reading<'_>) -> Vec<Group> {
    let study = reading.study();
    let (schedule, placement) = (schedules(study), placements(study));
    let mut groups: Vec<Group> = Vec::new();
    for (index, arm) in study.arms.iter().enumerate() {
        let title = schedule.and_then(|axis| arm.values.get(&axis.name)).cloned().unwrap_or_default();
        let rest: Vec<&str> = arm
            .values
            .iter()
            .filter(|(axis, _)| schedule.is_none_or(|own| own.name != **axis))
            .map(|(_, value)| value.as_str())
            .collect();
        let label = if arm.control.is_some() || rest.is_empty() { arm.name.clone() } else { rest.join(", ") };
        let place = groups.iter().position(|group| group.title == title).unwrap_or_else(|| {
            groups.push(Group { title, members: Vec::new() });
            groups.len() - 1
        });
        // An arm that differs from its placement's namesake in something else takes the next free colour.
        let wanted =
            placement.and_then(|axis| axis.values.iter().position(|value| arm.values.get(&axis.name) == Some(&value.label)));
        let taken: Vec<usize> = groups[place].members.iter().map(|member| member.colour).collect();
        let reserved = placement.map_or(0, |axis| axis.values.len());
        let colour = match wanted.filter(|colour| !taken.contains(colour)) {
            Some(colour) => colour,
            None => (reserved..).find(|colour| !taken.contains(colour)).unwrap_or_default(),
        };
        groups[place].members.push(Member { arm: index, label, colour });
    }
    groups
}

impl Member {
    /// The number of its colour's class.
    pub fn class(&self) -> usize {
        self.colour % COLOURS
    }
}
