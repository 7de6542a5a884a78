//! The only place that names concrete backends.

use std::sync::Arc;

use candor_backend::{Backend, Precision, Unavailable};
use candor_cpu::{CpuBackend, CpuConfig};
#[cfg(test)]
pub(crate) use candor_cuda::understand;
use candor_cuda::{Cards, CudaBackend};

pub use candor_cuda::{CudaDevice, PROBE_ARGUMENT, PROBE_LIMIT, ProbeCommand, find, probe_child};

/// What a set of backends depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendChoice {
    /// Threads that compute.
    pub threads: usize,
    /// For which sessions a load readies the weights.
    pub precision: Precision,
    /// The card that is asked before the processor; none leaves all to the processor.
    pub card: Option<CudaDevice>,
}

/// Makes what computes; the last one is the reference. Tests pass a scripted one.
pub type Backends = Arc<dyn Fn(&BackendChoice) -> Vec<Box<dyn Backend>> + Send + Sync>;

/// What this version computes with. What it makes knows of a card that was lost before.
pub fn backends() -> Backends {
    let cards = Cards::default();
    Arc::new(move |choice| {
        let config = CpuConfig {
            prepare: choice.precision,
            ..CpuConfig::new(choice.threads)
        };
        let card = choice.card.clone();
        let card = card.map(|card| CudaBackend::among(&cards, card));
        let card = card.map(|card| Box::new(card) as Box<dyn Backend>);
        let cpu: Box<dyn Backend> = Box::new(CpuBackend::new(config));
        card.into_iter().chain([cpu]).collect()
    })
}

/// The card to use: the one with this number, else the one with the most free memory.
///
/// # Errors
/// There is none of this number, or none at all.
pub fn choose_card(cards: &[CudaDevice], wish: Option<u32>) -> Result<CudaDevice, Unavailable> {
    let chosen = match wish {
        Some(number) => cards.iter().find(|card| card.ordinal == number as usize),
        // The first of several that have the same.
        None => cards.iter().rev().max_by_key(|card| card.free_bytes),
    };
    chosen.cloned().ok_or(match wish {
        Some(asked) if !cards.is_empty() => Unavailable::NoSuchDevice {
            asked: asked as usize,
            found: cards.len(),
        },
        _ => Unavailable::NoDevice,
    })
}

/// A card that nobody has looked at, to ask what could be run on one: that is the same for all.
pub(crate) fn any_card() -> CudaDevice {
    CudaDevice {
        ordinal: 0,
        name: String::new(),
        capability: (0, 0),
        total_bytes: 0,
        free_bytes: 0,
        driver_version: 0,
    }
}

/// The number of threads that help on this machine.
pub fn default_threads() -> usize {
    candor_cpu::default_threads()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(ordinal: usize, free_bytes: u64) -> CudaDevice {
        CudaDevice {
            ordinal,
            name: format!("card {ordinal}"),
            capability: (8, 9),
            total_bytes: 24_000_000_000,
            free_bytes,
            driver_version: 12_040,
        }
    }

    /// The cards there are, the number that is asked for, and the number that is taken.
    type Case<'a> = (&'a [CudaDevice], Option<u32>, Result<usize, Unavailable>);

    #[test]
    fn the_card_is_the_one_asked_for_else_the_one_with_most_room() {
        let cards = [card(0, 5), card(1, 9), card(3, 9)];
        let no_such = |asked, found| Err(Unavailable::NoSuchDevice { asked, found });
        let cases: [Case<'_>; 6] = [
            (&cards, None, Ok(1)),
            (&cards, Some(0), Ok(0)),
            (&cards, Some(3), Ok(3)),
            (&cards, Some(2), no_such(2, 3)),
            (&[], None, Err(Unavailable::NoDevice)),
            (&[], Some(0), Err(Unavailable::NoDevice)),
        ];
        for (cards, wish, want) in cases {
            let chosen = choose_card(cards, wish).map(|card| card.ordinal);
            assert_eq!(chosen, want, "{wish:?} of {}", cards.len());
        }
    }
}
