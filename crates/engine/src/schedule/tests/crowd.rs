//! Many clients that come, share beginnings, go away and are of every kind: none is lost, none is
//! mixed up with another, whatever gives way to whatever.

use super::together::keeping;
use super::*;
use crate::draw::uniform;
use crate::prefix::Reuse;

/// Numbers that depend on the crowd and on how many were drawn.
struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.drawn += 1;
        (uniform(self.seed, self.drawn) * end as f64) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// What somebody asks for.
    fn client(&mut self) -> GenerateOptions {
        let beginning = prompt(self.below(3) as u32, self.one_of(&[1, 40, 300, 700]));
        let own = prompt(10 + self.below(9) as u32, 1 + self.below(150));
        let mut options = options([beginning, own].concat(), 1 + self.below(12));
        options.priority = self.one_of(&[Priority::Interactive, Priority::Background]);
        options.reuse = self.one_of(&[Reuse::All, Reuse::OnlyRead, Reuse::Nothing]);
        options.sampling.temperature = self.one_of(&[0.0, 1.5]);
        options.sampling.seed = self.below(1_000) as u64;
        options.sampling.presence_penalty = self.one_of(&[0.0, 1.0]);
        options
    }
}

const CLIENTS: usize = 40;
const CTX_LEN: usize = 1_024;

/// A crowd in three slots and three that keep, of which not all can be full.
fn check(seed: u64, cut_tokens: usize) {
    let mut dice = Dice { seed, drawn: 0 };
    let mut bench = keeping(3, 3, CTX_LEN);
    bench.script.cut_only_at(cut_tokens);
    let mut clients = Vec::new();
    while clients.len() < CLIENTS || !bench.sequences.is_empty() {
        if clients.len() < CLIENTS && dice.below(3) == 0 {
            let options = dice.client();
            let (cancel, log) = bench.add(options.clone());
            clients.push((options, cancel, log));
        }
        if dice.below(9) == 0 && !clients.is_empty() {
            clients[dice.below(clients.len())].1.cancel();
        }
        bench.step();
    }
    let mut whole = 0;
    for (i, (options, cancel, log)) in clients.into_iter().enumerate() {
        let alone = Bench::new(CTX_LEN, 1).reply(options).0;
        let (reason, _) = finished(&log);
        let written = ids(&log);
        match reason {
            FinishReason::Length => assert_eq!(written, alone, "{seed}: client {i}"),
            FinishReason::Cancelled => assert!(cancel.is_cancelled()),
            other => panic!("{seed}: client {i} ended by {other:?}"),
        }
        assert!(alone.starts_with(&written), "{seed}: client {i}");
        whole += usize::from(reason == FinishReason::Length);
    }
    assert!(whole > CLIENTS / 4, "{seed}: {whole}");
}

#[test]
fn nobody_in_a_crowd_is_lost_or_mixed_up() {
    for seed in 0..8 {
        // States that can be cut anywhere, and such as are cut at multiples only.
        check(seed, if seed % 2 == 0 { 1 } else { 16 });
    }
}
