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
    /// Rows up to which a forward has an arithmetic of its own, that of a reply being written; 0
    /// where every forward computes alike.
    pub few_rows: usize,
    /// How much is computed.
    pub size: Size,
}

/// How large models and prompts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Every shape.
    Full,
    /// Fewer and smaller ones, for a device that is simulated instruction by instruction.
    Simulated,
}

impl Size {
    /// What is computed at this size.
    fn pick<T>(self, full: T, simulated: T) -> T {
        match self {
            Self::Full => full,
            Self::Simulated => simulated,
        }
    }
}

impl Subject {
    /// Whether two forwards of these rows compute alike.
    fn alike(&self, rows: usize, others: usize) -> bool {
        (rows <= self.few_rows) == (others <= self.few_rows)
    }
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

/// Products of matrices and activations that are both rounded to float16 lose some 5e-4 of a value.
const HALVES: f64 = 2e-3;

impl Tolerance {
    fn of(self, precision: Precision) -> f64 {
        match precision {
            Precision::Exact => self.exact,
            Precision::Fast => self.fast,
        }
    }

    /// Of the product of a matrix with so many rows.
    fn of_product(self, subject: &Subject, rows: usize) -> Self {
        match subject.few_rows > 0 && rows > subject.few_rows {
            true => Self {
                fast: self.fast.max(HALVES),
                ..self
            },
            false => self,
        }
    }
}

/// Storage types that there are.
pub fn types() -> usize {
    candor_quant::TYPES.len()
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
                experts: experts_of_mixed_types_match_the_reference,
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
    // What reads matrices, once more for each storage type.
    ($module:ident by type: $subject:expr) => {
        mod $module {
            use super::*;

            $crate::conformance!(@types $subject;
                f32: "F32", f16: "F16", bf16: "BF16",
                q4_0: "Q4_0", q4_1: "Q4_1", q5_0: "Q5_0", q5_1: "Q5_1", q8_0: "Q8_0",
                q2_k: "Q2_K", q3_k: "Q3_K", q4_k: "Q4_K", q5_k: "Q5_K", q6_k: "Q6_K",
                iq1_s: "IQ1_S", iq1_m: "IQ1_M",
                iq2_xxs: "IQ2_XXS", iq2_xs: "IQ2_XS", iq2_s: "IQ2_S",
                iq3_xxs: "IQ3_XXS", iq3_s: "IQ3_S", iq4_nl: "IQ4_NL", iq4_xs: "IQ4_XS",
                tq1_0: "TQ1_0", tq2_0: "TQ2_0", mxfp4: "MXFP4", nvfp4: "NVFP4",
            );

            #[test]
            fn every_type_has_its_tests() {
                assert_eq!(TYPES.len(), $crate::conformance::types());
            }
        }
    };
    (@types $subject:expr; $($module:ident: $name:literal,)*) => {
        const TYPES: &[&str] = &[$($name),*];
        $(
            mod $module {
                use super::*;

                $crate::conformance!(@of_type $subject, $name;
                    embed: embed_of, linear: linear_of, logits: logits_of,
                    gated_ffn: gated_ffn_of, experts: experts_of,
                );
            }
        )*
    };
    (@of_type $subject:expr, $name:literal; $($file:ident: $case:ident,)*) => { $(
        #[test]
        fn $file() {
            $crate::conformance::$file::$case(&$subject, $name);
        }
    )* };
    (@cases $subject:expr; $($file:ident: $case:ident,)*) => { $(
        #[test]
        fn $case() {
            $crate::conformance::$file::$case(&$subject);
        }
    )* };
}
