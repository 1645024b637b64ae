//! `generate tales(documents, seed)`: short stories that xrun writes itself.
//!
//! What a tale asks of a model: spelling and words (shallow), names that come back after many tokens (induction), and who holds what
//! after several handovers (state that a reader has to carry through the text, so that depth matters). Every tale is a document of
//! its own with a title, quotation marks and paragraph ends, so that there are structural tokens.
//!
//! Invariant: document `i` is a function of the seed and `i` alone.

use std::fmt::Write as _;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::study::seed;

const PEOPLE: [&str; 24] = [
    "Ada", "Bela", "Cora", "Dario", "Edda", "Falk", "Greta", "Hugo", "Ines", "Jaro", "Kira", "Lene", "Mara", "Nils", "Oskar",
    "Petra", "Quirin", "Rosa", "Sven", "Tilda", "Ulla", "Vito", "Wanda", "Yara",
];
const ADJECTIVES: [&str; 12] =
    ["brass", "green", "heavy", "old", "painted", "small", "silver", "broken", "round", "warm", "striped", "secret"];
const THINGS: [&str; 18] = [
    "key", "lantern", "letter", "basket", "whistle", "map", "kettle", "button", "mirror", "drum", "coin", "scarf", "lamp",
    "book", "rope", "apple", "bell", "box",
];
const PLACES: [&str; 12] = [
    "the mill",
    "the harbour",
    "the old bridge",
    "the market",
    "the orchard",
    "the tower",
    "the bakery",
    "the quarry",
    "the ferry",
    "the school",
    "the north gate",
    "the well",
];
const WEATHER: [&str; 6] =
    ["It was raining", "The sun was low", "Snow had fallen", "A wind came up", "Fog lay on the fields", "It was noon"];

fn pick<'a>(random: &mut ChaCha8Rng, words: &[&'a str]) -> &'a str {
    words[random.random_range(0..words.len())]
}

/// So many different words of a list, in random order.
fn several<'a>(random: &mut ChaCha8Rng, words: &[&'a str], count: usize) -> Vec<&'a str> {
    let mut left = words.to_vec();
    (0..count.min(left.len())).map(|_| left.swap_remove(random.random_range(0..left.len()))).collect()
}

/// One tale, without a final line end.
pub fn document(seed: u64, index: u64) -> String {
    let random = &mut seed::stream(seed, &format!("tales/{index}"));
    let cast_size = random.random_range(2..=4);
    let cast = several(random, &PEOPLE, cast_size);
    let thing_count = random.random_range(1..=3);
    let things: Vec<String> =
        several(random, &THINGS, thing_count).into_iter().map(|thing| format!("{} {thing}", pick(random, &ADJECTIVES))).collect();
    let mut holder: Vec<usize> = (0..things.len()).map(|_| random.random_range(0..cast.len())).collect();
    let mut place: Vec<&str> = (0..cast.len()).map(|_| pick(random, &PLACES)).collect();

    let mut tale = format!("The {}\n", things[0]);
    let _ = write!(tale, "{} at {}.", pick(random, &WEATHER), place[0]);
    for (thing, who) in things.iter().zip(&holder) {
        let _ = write!(tale, " {} had the {thing}.", cast[*who]);
    }
    for _ in 0..random.random_range(2..=6) {
        let thing = random.random_range(0..things.len());
        let from = holder[thing];
        match random.random_range(0..4) {
            0 | 1 => {
                let to = (from + random.random_range(1..cast.len())) % cast.len();
                let _ = match random.random_range(0..3) {
                    0 => write!(tale, " {} gave the {} to {}.", cast[from], things[thing], cast[to]),
                    1 => write!(tale, " {} took the {} from {}.", cast[to], things[thing], cast[from]),
                    _ => write!(tale, " \"Here, {},\" said {}, and handed over the {}.", cast[to], cast[from], things[thing]),
                };
                holder[thing] = to;
            }
            2 => {
                let who = random.random_range(0..cast.len());
                place[who] = pick(random, &PLACES);
                let _ = write!(tale, " {} went to {}.", cast[who], place[who]);
            }
            _ => {
                let asks = (from + random.random_range(1..cast.len())) % cast.len();
                let _ = write!(
                    tale,
                    "\n\"Who has the {}?\" asked {}. \"{} has it,\" was the answer.",
                    things[thing], cast[asks], cast[from]
                );
            }
        }
    }
    for (thing, who) in things.iter().zip(&holder) {
        let _ = write!(tale, "\nIn the end {} kept the {thing}.", cast[*who]);
    }
    tale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tale_depends_on_seed_and_index_alone() {
        assert_eq!(document(1, 7), document(1, 7));
        assert_ne!(document(1, 7), document(1, 8));
        assert_ne!(document(1, 7), document(2, 7));
    }

    #[test]
    fn names_come_back_and_tales_end_with_who_kept_what() {
        for index in 0..200 {
            let tale = document(5, index);
            assert!(tale.is_ascii() && (100..1_500).contains(&tale.len()), "{tale}");
            let last = tale.lines().last().expect("has lines");
            let name = last.split(' ').nth(3).expect("names someone");
            assert!(tale.matches(name).count() >= 2, "{tale}");
        }
    }
}
