//! The suite that every backend has to pass.
//!
//! A backend's tests call [`conformance!`](crate::conformance!) once for each way in which it
//! computes. [`sessions`] and [`state`] hold whole sessions to the contract; the other files hold
//! one operation each against [`mod@reference`], plain float64 arithmetic, within the tolerance
//! that stands there.
//!
//! The suite writes no files itself: the [`Subject`] turns tensors into a [`ModelFile`].

pub mod add;
pub mod attention;
pub mod causal_conv;
pub mod delta_net;
pub mod embed;
pub mod experts;
pub mod gate;
pub mod gated_ffn;
pub mod linear;
pub mod logits;
pub mod part;
pub mod reference;
pub mod rms_norm;
pub mod rope;
pub mod scale;
pub mod sessions;
pub mod state;

mod bench;

pub use bench::TensorBytes;

use candor_modelfile::ModelFile;

use crate::{Backend, KvType, Precision};

/// What is held to the suite.
pub struct Subject {
    /// Makes the backend.
    pub backend: fn() -> Box<dyn Backend>,
    /// Writes a model file with these tensors and opens it.
    pub file: fn(&[TensorBytes]) -> ModelFile,
    /// The arithmetic of the sessions.
    pub precision: Precision,
    /// How they keep keys and values.
    pub kv: KvType,
}

/// How far a result may be from the reference, as a share of the reference's length
/// (the root of the sum of squares).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Where activations are float32.
    pub exact: f64,
    /// On the fast path.
    pub fast: f64,
}

impl Tolerance {
    fn of(self, precision: Precision) -> f64 {
        match precision {
            Precision::Exact => self.exact,
            Precision::Fast => self.fast,
        }
    }
}

/// Makes the tests of the suite for one [`Subject`], in a module of the given name.
#[macro_export]
macro_rules! conformance {
    ($module:ident: $subject:expr) => {
        mod $module {
            use super::*;

            $crate::conformance!(@cases $subject;
                add: add_matches_the_reference,
                attention: attention_matches_the_reference,
                causal_conv: causal_conv_matches_the_reference,
                delta_net: delta_net_matches_the_reference,
                embed: embed_matches_the_reference,
                experts: experts_match_the_reference,
                experts: ties_go_to_the_lower_expert,
                gated_ffn: gated_ffn_matches_the_reference,
                linear: linear_matches_the_reference,
                logits: logits_match_the_reference,
                rms_norm: rms_norm_matches_the_reference,
                rope: rope_matches_the_reference,
                gate: gate_matches_the_reference,
                part: part_matches_the_reference,
                scale: scale_matches_the_reference,
                sessions: chunks_of_any_size_give_the_same_bits,
                sessions: slots_do_not_touch_each_other,
                sessions: a_cancelled_forward_changes_nothing,
                state: a_cut_state_is_as_one_that_never_was_longer,
                state: a_mark_is_reached_again_and_again,
                state: a_fork_goes_its_own_way,
                state: what_does_not_fit_is_refused_and_changes_nothing,
                state: the_pool_is_shared_and_given_back,
                sessions: top_agrees_with_logits,
                sessions: a_tap_sees_every_node_and_changes_nothing,
                sessions: tickets_are_taken_once,
                sessions: what_is_no_number_is_an_error,
                sessions: a_load_can_be_stopped,
            );
        }
    };
    (@cases $subject:expr; $($file:ident: $case:ident,)*) => { $(
        #[test]
        fn $case() {
            $crate::conformance::$file::$case(&$subject);
        }
    )* };
}
