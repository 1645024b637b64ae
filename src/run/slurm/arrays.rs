//! Lays nodes into jobs and job arrays, few for many nodes.
//!
//! Owns which nodes share an array and what each array waits for. Nodes of one level that are of one kind, about one size, and wait for the
//! same are an array. Phases that go on from the phases of another array do so task by task (`aftercorr`), so that one that failed stops what needs
//! it and nothing else. Deliberately knows no Slurm: ids come later. Invariant: a task begins after all that its node needs.

use std::collections::{BTreeMap, BTreeSet};

use super::size::Size;
use crate::plan::Key;

/// A node that is to be submitted.
#[derive(Debug)]
pub struct Item<'a> {
    /// Its key.
    pub key: &'a Key,
    /// Its kind of work.
    pub kind: &'a str,
    /// What it waits for; what is done already, or never heard of, is not waited for.
    pub needs: &'a [Key],
    /// The one among them that is its own, or shared with few: the phase that it goes on from or looks at.
    pub follows: Option<&'a Key>,
    /// What it takes.
    pub size: Size,
}

/// A job of Slurm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// In the queue already, by its id.
    Queued(u64),
    /// To be submitted, by its place in the list.
    New(usize),
}

/// Where a node is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The job.
    pub job: Job,
    /// Which of its tasks; `None`: it is no array.
    pub task: Option<u32>,
}

/// A job array, or a job where it has one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// What each of its tasks asks for.
    pub size: Size,
    /// Nodes by the number of their task.
    pub tasks: BTreeMap<u32, Key>,
    /// All of it begins after these have ended well.
    pub after: BTreeSet<Place>,
    /// Each task begins after the task of the same number of that array has ended well.
    pub pairs: Option<Job>,
}

/// What nodes of one array have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    kind: &'a str,
    class: (u32, u32),
    after: BTreeSet<Place>,
    /// The array that they follow, each a task of it.
    follows: Option<Job>,
}

/// Lays `items`, each of which follows what it needs, into arrays whose tasks have numbers below `most`. An array comes after those that it
/// waits for; `queued` says where nodes are that others have submitted.
pub fn lay(items: &[Item<'_>], queued: &BTreeMap<Key, Place>, most: u32) -> Vec<Array> {
    let mut places = queued.clone();
    let mut arrays: Vec<Array> = Vec::new();
    for level in levels(items) {
        let mut groups: BTreeMap<Group<'_>, Vec<(u32, &Item<'_>)>> = BTreeMap::new();
        for item in level {
            let (group, task) = group(item, &places);
            groups.entry(group).or_default().push((task, item));
        }
        for array in groups.into_iter().flat_map(|(group, items)| split(group, &items, most.max(1) as usize)) {
            let (job, alone) = (Job::New(arrays.len()), array.tasks.len() == 1);
            let place = |task: u32| Place { job, task: (!alone).then_some(task) };
            places.extend(array.tasks.iter().map(|(task, key)| (key.clone(), place(*task))));
            arrays.push(array);
        }
    }
    arrays
}

/// By the length of the longest way to each.
fn levels<'a>(items: &'a [Item<'a>]) -> Vec<Vec<&'a Item<'a>>> {
    let mut level_of: BTreeMap<&Key, usize> = BTreeMap::new();
    let mut levels: Vec<Vec<&Item<'_>>> = Vec::new();
    for item in items {
        let level = item.needs.iter().filter_map(|need| level_of.get(need)).map(|level| level + 1).max().unwrap_or(0);
        level_of.insert(item.key, level);
        if levels.len() <= level {
            levels.resize_with(level + 1, Vec::new);
        }
        levels[level].push(item);
    }
    levels
}

/// The group of an item, and the task that it follows.
fn group<'a>(item: &Item<'a>, places: &BTreeMap<Key, Place>) -> (Group<'a>, u32) {
    let mut after: BTreeSet<Place> = item.needs.iter().filter_map(|need| places.get(need)).copied().collect();
    let followed = item.follows.and_then(|key| places.get(key)).filter(|place| place.task.is_some());
    if let Some(place) = followed {
        after.remove(place);
    }
    let group = Group { kind: item.kind, class: item.size.class(), after, follows: followed.map(|place| place.job) };
    (group, followed.and_then(|place| place.task).unwrap_or(0))
}

/// Into arrays, each item with the task that it follows: task by task, or one array for each task that is followed, whichever gives fewer.
fn split(group: Group<'_>, items: &[(u32, &Item<'_>)], most: usize) -> Vec<Array> {
    let mut followers: BTreeMap<u32, Vec<&Item<'_>>> = BTreeMap::new();
    for (task, item) in items {
        followers.entry(*task).or_default().push(item);
    }
    let widest = followers.values().map(Vec::len).max().unwrap_or(0);
    let array = |tasks: Vec<(u32, &Item<'_>)>, after: Option<Place>, pairs: Option<Job>| Array {
        size: tasks.iter().map(|(_, item)| item.size).reduce(Size::or).unwrap_or_default(),
        tasks: tasks.into_iter().map(|(task, item)| (task, item.key.clone())).collect(),
        after: group.after.iter().copied().chain(after).collect(),
        pairs,
    };
    if let Some(job) = group.follows
        && widest < followers.len()
    {
        let nth =
            |nth: usize| -> Vec<_> { followers.iter().filter_map(|(task, items)| Some((*task, *items.get(nth)?))).collect() };
        return (0..widest)
            .map(|number| match nth(number).as_slice() {
                [(task, item)] => array(vec![(0, item)], Some(Place { job, task: Some(*task) }), None),
                tasks => array(tasks.to_vec(), None, Some(job)),
            })
            .collect();
    }
    let chunks = followers.iter().flat_map(|(task, items)| items.chunks(most).map(|items| (*task, items)));
    chunks
        .map(|(task, items)| {
            let followed = group.follows.map(|job| Place { job, task: Some(task) });
            array((0..).zip(items.iter().copied()).collect(), followed, None)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(text: &str) -> Key {
        Key(text.to_owned())
    }

    /// Nodes as `name: need need`, the first need of a phase being the one that it follows; what begins with `p` is a phase.
    fn told(nodes: &[(&str, &str)], queued: &[(&str, Place)], most: u32) -> Vec<String> {
        let nodes: Vec<(Key, Vec<Key>)> =
            nodes.iter().map(|(name, needs)| (key(name), needs.split_whitespace().map(key).collect())).collect();
        let items: Vec<Item<'_>> = nodes
            .iter()
            .map(|(key, needs)| Item {
                key,
                kind: &key.0[..1],
                needs,
                follows: needs.first().filter(|need| key.0.starts_with('p') && need.0.starts_with('p')),
                size: Size::default(),
            })
            .collect();
        let queued = queued.iter().map(|(name, place)| (key(name), *place)).collect();
        let place = |Place { job, task }: &Place| {
            let job = match job {
                Job::Queued(id) => format!("#{id}"),
                Job::New(place) => format!("{place}"),
            };
            task.map_or(job.clone(), |task| format!("{job}_{task}"))
        };
        let told = |array: &Array| {
            let tasks: Vec<String> = array.tasks.iter().map(|(task, key)| format!("{task}={key}")).collect();
            let after: Vec<String> = array.after.iter().map(place).collect();
            let pairs = array.pairs.map_or_else(String::new, |job| format!(" pairs {}", place(&Place { job, task: None })));
            format!("{} after {}{pairs}", tasks.join(" "), after.join(" "))
        };
        lay(&items, &queued, most).iter().map(told).collect()
    }

    #[test]
    fn runs_of_a_study_are_an_array_a_phase() {
        let nodes = [("c", ""), ("t", "c"), ("pa0", "c t"), ("pb0", "c t"), ("pa1", "pa0 c t"), ("pb1", "pb0 c t")];
        let arrays = ["0=c after ", "0=t after 0", "0=pa0 1=pb0 after 0 1", "0=pa1 1=pb1 after 0 1 pairs 2"];
        assert_eq!(told(&nodes, &[], 1000), arrays);
    }

    #[test]
    fn a_phase_that_two_go_on_from_has_two_arrays_behind_it() {
        let nodes =
            [("pa", ""), ("pb", ""), ("pc", ""), ("pa1", "pa"), ("pa2", "pa"), ("pb1", "pb"), ("pb2", "pb"), ("pc1", "pc")];
        let arrays = ["0=pa 1=pb 2=pc after ", "0=pa1 1=pb1 2=pc1 after  pairs 0", "0=pa2 1=pb2 after  pairs 0"];
        assert_eq!(told(&nodes, &[], 1000), arrays);
    }

    #[test]
    fn many_that_go_on_from_one_are_one_array() {
        let nodes = [("pa", ""), ("pb", ""), ("pa1", "pa"), ("pa2", "pa"), ("pa3", "pa"), ("pb1", "pb")];
        let arrays = ["0=pa 1=pb after ", "0=pa1 1=pa2 2=pa3 after 0_0", "0=pb1 after 0_1"];
        assert_eq!(told(&nodes, &[], 1000), arrays);
    }

    #[test]
    fn an_array_is_no_larger_than_slurm_allows() {
        let nodes = [("pa", ""), ("pb", ""), ("pc", ""), ("pd", "pc"), ("pe", "pa"), ("pf", "pb")];
        let arrays = ["0=pa 1=pb after ", "0=pc after ", "0=pe 1=pf after  pairs 0", "0=pd after 1"];
        assert_eq!(told(&nodes, &[], 2), arrays);
    }

    #[test]
    fn what_is_in_the_queue_is_waited_for_and_what_is_done_is_not() {
        let at = |id, task| Place { job: Job::Queued(id), task };
        let queued = [("t", at(7, None)), ("pa", at(8, Some(3))), ("pb", at(8, Some(5)))];
        let nodes = [("pa1", "pa t c"), ("pb1", "pb t c"), ("pc1", "pc t c")];
        assert_eq!(told(&nodes, &queued, 1000), ["0=pc1 after #7", "3=pa1 5=pb1 after #7 pairs #8"]);
        assert_eq!(told(&nodes[1..2], &queued, 1000), ["0=pb1 after #7 #8_5"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
        /// Every node once, every need waited for by its own task, no array above the limit.
        #[test]
        fn a_task_begins_after_all_that_it_needs(
            needs in proptest::collection::vec(proptest::collection::vec(any::<prop::sample::Index>(), 0..4), 1..40),
            kinds in proptest::collection::vec(0..3_usize, 40),
            most in 1..6_u32,
        ) {
            let keys: Vec<Key> = (0..needs.len()).map(|at| Key(format!("{at:02}"))).collect();
            let needs: Vec<Vec<Key>> = needs.iter().enumerate()
                .map(|(at, needs)| needs.iter().filter(|_| at > 0).map(|need| keys[need.index(at)].clone()).collect())
                .collect();
            let items: Vec<Item<'_>> = keys.iter().zip(&needs).zip(&kinds)
                .map(|((key, needs), kind)| Item { key, kind: ["a", "b", "c"][*kind], needs, follows: needs.first(), size: Size::default() })
                .collect();
            let arrays = lay(&items, &BTreeMap::new(), most);
            let at: BTreeMap<&Key, (usize, u32)> =
                arrays.iter().enumerate().flat_map(|(number, array)| array.tasks.iter().map(move |(task, key)| (key, (number, *task)))).collect();
            prop_assert_eq!(arrays.iter().map(|array| array.tasks.len()).sum::<usize>(), keys.len());
            prop_assert_eq!(at.len(), keys.len());
            for item in &items {
                let (number, task) = at[item.key];
                let array = &arrays[number];
                prop_assert!(task < most && array.tasks.len() <= most as usize);
                for need in item.needs {
                    let (other, its) = at[need];
                    let alone = arrays[other].tasks.len() == 1;
                    let place = Place { job: Job::New(other), task: (!alone).then_some(its) };
                    prop_assert!(other < number);
                    prop_assert!(array.after.contains(&place) || array.pairs == Some(Job::New(other)) && its == task, "{item:?}");
                }
            }
        }
    }
}
