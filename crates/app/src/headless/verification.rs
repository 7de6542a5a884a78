//! A card held against the processor, and nothing else.

use std::path::Path;
use std::sync::Arc;

use candor_backend::CancelToken;
use candor_engine::{LoadFailure, PassedOver, Report, Watch};

use super::device::{Judgement, VerdictKind};
use super::failure::Failure;
use super::setup::Setup;
use crate::banner;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// What the guard said.
    pub kind: VerdictKind,
    /// What it saw.
    pub report: Option<Arc<Report>>,
    /// The card's name, if there is one.
    pub device: Option<String>,
    /// The driver's version, if it said one.
    pub driver: Option<String>,
    /// Why nothing was judged, or what was found, in plain words.
    pub reason: String,
}

/// Loads a model on the card that was chosen and holds it against the processor. Nothing that was
/// kept of earlier checks is relied on.
///
/// # Errors
/// [`Failure`] if the model cannot be used, or somebody stopped it. That no card can be judged is an
/// answer.
pub fn verify(
    setup: &Setup,
    path: &Path,
    cancel: &CancelToken,
    watch: &mut Watch<'_>,
) -> Result<Verification, Failure> {
    let card = match &setup.cards.choice.card {
        Ok(card) => card,
        Err(why) => return Ok(no_card(why)),
    };
    let verification = |judged: Judgement, reason| Verification {
        // What is not needed elsewhere was asked for here.
        kind: match judged.kind {
            VerdictKind::NotNeeded => VerdictKind::NotJudged,
            kind => kind,
        },
        report: judged.report,
        device: Some(card.name.clone()),
        driver: Some(card.driver_branch()),
        reason,
    };
    match setup.direct(path, cancel, watch) {
        Ok(direct) => {
            let model = direct.model();
            let judged = setup.cards.choice.judgement(model);
            Ok(verification(
                judged,
                banner::proof(&model.proof).to_string(),
            ))
        }
        Err(Failure::Load { path, source }) => match not_on_device(&source) {
            Some(passed) => Ok(verification(
                Judgement::of(passed),
                banner::why_not(passed).to_string(),
            )),
            None => Err(Failure::Load { path, source }),
        },
        Err(failure) => Err(failure),
    }
}

fn not_on_device(failure: &LoadFailure) -> Option<&PassedOver> {
    match failure {
        LoadFailure::NotOnDevice { passed_over } => passed_over.last(),
        _ => None,
    }
}

fn no_card(why: &candor_backend::Unavailable) -> Verification {
    use candor_backend::Unavailable::{DeviceTooOld, DriverTooOld};
    let (device, driver) = match why {
        DeviceTooOld { device, .. } => (Some(device.clone()), None),
        DriverTooOld { found, .. } => (None, Some(found.clone())),
        _ => (None, None),
    };
    Verification {
        kind: VerdictKind::NotJudged,
        report: None,
        device,
        driver,
        reason: banner::why_not(&banner::unavailable(why.clone())).to_string(),
    }
}
