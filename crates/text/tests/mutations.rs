//! Seeded mutations of chat templates: rendering answers, whatever stands in a model file, and
//! takes no more memory than its limit allows.
//!
//! One test only: it looks at the memory of its whole process.

use std::fs;
use std::path::{Path, PathBuf};

use candor_testkit::Random;
use candor_testkit::mutate::mutate;

mod promises;
#[path = "../../modelfile/tests/support/mod.rs"]
mod support;
use promises::{check, conversations};
use support::{Budget, figure_kb};

const ROUNDS: usize = 1_000;

/// What the fuel of one rendering allows is 128 MB, twice that while a text grows; what the allocator
/// keeps comes on top.
const GROWTH_KB_MAX: u64 = 400 << 10;

/// The largest memory that was really used: the stack of a template is mostly address space.
const PEAK: &str = "VmHWM:";

/// Templates as they are in the wild, shortened: loops, macros, namespaces, refusals, tools. The
/// fuzz target begins with them too.
fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/template");
    let files = fs::read_dir(folder).expect("the seeds are part of the sources");
    let mut seeds: Vec<PathBuf> = files
        .map(|file| file.expect("the folder can be read").path())
        // What a fuzzer left there is not ours.
        .filter(|path| path.to_string_lossy().contains("seed-"))
        .collect();
    seeds.sort();
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a seed is text");
    seeds.iter().map(read).collect()
}

/// Pieces that are put between others: what grows, loops, nests and fails.
const PIECES: &[&str] = &[
    "{% for a in range(999999) %}",
    "{% for a in messages %}",
    "{% endfor %}",
    "{% if true %}",
    "{% else %}",
    "{% endif %}",
    "{% set x = x ~ x %}",
    "{% set x = 'abc' * 1000000 %}",
    "{% set x = [messages] * 100000 %}",
    "{% macro m(a) %}{{ m(a ~ a) }}{% endmacro %}",
    "{{ m('x') }}",
    "{{ caller() }}",
    "{% filter upper %}",
    "{% endfilter %}",
    "{{ x | tojson(indent=1000000000) }}",
    "{{ messages | tojson }}",
    "{{ x | indent(1000000000) }}",
    "{{ x | center(1000000000) }}",
    "{{ 'a'.center(1000000000) }}",
    "{{ 'a'.ljust(1000000000) }}",
    "{{ 'a'.zfill(1000000000) }}",
    "{{ [1] | slice(1000000000) | list | length }}",
    "{{ [1] | batch(1000000000, 'x') | list | length }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ range(1000000000) | list | length }}",
    "{{ 'a' | replace('', 'aaaaaaaaaaaaaaaa' * 1000) | length }}",
    "{{ x.replace('', x).replace('', x) | length }}",
    "{{ ('a,' * 100000).split(',') | length }}",
    "{{ [x] * 1000000 }}",
    "{{ x.join([x] * 1000) }}",
    "{{ dict(a=x, b=x) | dictsort | tojson }}",
    "{% set n = namespace(x=1) %}{% for a in range(2000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
    "{{ 10 ** 1000 }}",
    "{{ 9223372036854775807 + 1 }}{{ -9223372036854775808 // -1 }}{{ 1 // 0 }}{{ 1 % 0 }}",
    "{{ messages[0].content[::-1] }}{{ x[1:9999999999:0] }}",
    "{{ strftime_now('%Y' * 100000) | length }}",
    "{{ raise_exception(x) }}",
    "{{ raise_exception('é' * 100000) }}",
    "{{ '\\ufdd0' }}{{ '<|im_' }}{{ 'end|>' }}",
    "{% raw %}{{{% endraw %}",
    "{# {# #}",
    "{%",
    "}}",
    "\u{0}\u{feff}\u{fdd0}",
];

/// Where templates are cut: before what a piece can stand between.
const BORDERS: &[&str] = &["{%", "{{", "%}", "}}", " ", "|", "."];

fn template(seeds: &[String], random: &mut Random) -> String {
    let seed = &seeds[random.below(seeds.len())];
    match random.below(3) {
        0 => {
            let bytes = mutate(seed.as_bytes(), seed.len(), random);
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => spliced(seed, seeds, random),
        _ => {
            let pieces = 1 + random.below(6);
            (0..pieces)
                .map(|_| PIECES[random.below(PIECES.len())])
                .collect()
        }
    }
}

/// A seed with pieces put in, taken out or put in place of parts of it.
fn spliced(seed: &str, seeds: &[String], random: &mut Random) -> String {
    let mut text = seed.to_owned();
    for _ in 0..=random.below(3) {
        let border = BORDERS[random.below(BORDERS.len())];
        let places: Vec<usize> = text.match_indices(border).map(|(at, _)| at).collect();
        if places.is_empty() {
            continue;
        }
        let from = places[random.below(places.len())];
        let to = match random.below(3) {
            0 => places[random.below(places.len())].max(from),
            _ => from,
        };
        let donor = match random.below(2) {
            0 => PIECES[random.below(PIECES.len())],
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let at = other.match_indices("{%").map(|(at, _)| at).last();
                &other[at.unwrap_or(0)..]
            }
        };
        text.replace_range(from..to, donor);
    }
    text
}

#[test]
fn mutated_templates_never_panic_nor_take_memory() {
    let conversations = conversations();
    let seeds = seeds();
    assert!(seeds.len() >= 5);
    for seed in &seeds {
        assert!(check(seed, &conversations), "{seed}");
    }
    let mut random = Random::new(20_28);
    let before = figure_kb(PEAK);
    let (mut rendered, mut rounds) = (0, 0);
    let budget = Budget::rounds(ROUNDS);
    while budget.allows(rounds) {
        rendered += usize::from(check(&template(&seeds, &mut random), &conversations));
        rounds += 1;
    }
    println!("{rounds} mutations, {rendered} of them rendered");
    // Both outcomes have to occur, or the mutations test nothing.
    assert!(
        rendered > rounds / 100 && rendered < rounds,
        "{rendered} of {rounds} rendered"
    );
    match (before, figure_kb(PEAK)) {
        (Some(before), Some(after)) => {
            assert!(
                after - before <= GROWTH_KB_MAX,
                "{before} kB grew to {after} kB"
            );
        }
        _ => eprintln!("NOT RUN: memory of the mutated templates: no /proc on this system"),
    }
}
