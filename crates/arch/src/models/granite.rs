//! granite and granitemoe: IBM's Granite 3 and 4, dense or of experts. As llama, with factors on
//! embeddings, on what each layer adds, on the scores and on the logits.

use candor_modelfile::Index;

use crate::architecture::Architecture;
use crate::blocks::FeedForward;
use crate::error::ArchError;
use crate::features::{Experts, Scales};
use crate::hparams::{HParams, limits};
use crate::keys::Keys;
use crate::models::llama;

/// The dense row of the table.
pub const GRANITE: Architecture = Architecture {
    names: &["granite"],
    hparams: |index| hparams(index, FeedForward::Dense),
    build: llama::build,
};

/// The row of the experts.
pub const GRANITEMOE: Architecture = Architecture {
    names: &["granitemoe"],
    hparams: |index| hparams(index, FeedForward::Experts),
    build: llama::build,
};

fn hparams(index: &Index, feed_forward: FeedForward) -> Result<HParams, ArchError> {
    let keys = Keys { index };
    // The hybrids' way to say that the layers know no positions.
    if keys.flag("rope.scaling.finetuned")? == Some(false) {
        return Err(keys.unsupported("rope.scaling.finetuned", "false"));
    }
    let mut h = HParams::decoder(&keys)?;
    h.features.rope_scaling = keys.rope_scaling(h.context_length)?;
    h.features.experts = match feed_forward {
        FeedForward::Dense => {
            keys.refuse_experts()?;
            None
        }
        FeedForward::Experts => Some(experts(&keys)?),
    };
    h.features.scales = Some(Scales {
        embedding: keys.positive("embedding_scale", Some(1.0))?,
        residual: keys.positive("residual_scale", Some(1.0))?,
        // The file has what the logits are divided by.
        logits: 1.0 / keys.positive("logit_scale", Some(1.0))?,
    });
    Ok(h)
}

/// Each is as wide as a dense feed-forward would be; some files have one more for all rows.
fn experts(keys: &Keys<'_>) -> Result<Experts, ArchError> {
    let inner = keys.count("feed_forward_length", limits::FFN_WIDTH_MAX)?;
    let shared = "expert_shared_feed_forward_length";
    Ok(Experts {
        shared_inner: match keys.find(shared)? {
            None | Some(0) => 0,
            Some(_) => keys.count(shared, limits::FFN_WIDTH_MAX)?,
        },
        ..keys.experts_of(inner)?
    })
}
