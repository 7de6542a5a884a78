//! One vector for a text: what the model made of its tokens, gathered and of length 1.

use std::fmt;
use std::sync::Arc;

use candor_backend::{CancelToken, RowOutput};

use crate::load::LoadedModel;
use crate::prefix::Reuse;
use crate::request::{GenerateOptions, GenerateRequest, Priority, RequestError};
use crate::sampler::Sampling;
use crate::turn_log::TurnLog;

/// How the rows of a text become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all rows.
    Mean,
    /// The last row.
    Last,
}

/// Why a model gives no embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEmbedding {
    /// The file asks for a way that only encoders have, or for scores instead of vectors.
    #[error(
        "this model's way to gather a text into one vector (pooling type {found}) is not supported"
    )]
    Pooling {
        /// As the file says it.
        found: u32,
    },
}

/// Keys of the ways in a file, as llama.cpp numbers them (`enum llama_pooling_type`).
const MEAN: u32 = 1;
const LAST: u32 = 3;

impl Pooling {
    /// What the model's file says; the mean where it says nothing, since no row of a model that
    /// was not trained for it stands for the whole text.
    ///
    /// # Errors
    /// [`NoEmbedding`].
    pub fn of(model: &LoadedModel) -> Result<Self, NoEmbedding> {
        let index = model.model.file.index();
        let key = format!("{}.pooling_type", index.architecture);
        match index.metadata.u32(&key) {
            Ok(MEAN) | Err(_) => Ok(Self::Mean),
            Ok(LAST) => Ok(Self::Last),
            Ok(found) => Err(NoEmbedding::Pooling { found }),
        }
    }
}

/// A text whose vector is wanted. Its log has one [`Event::Embedding`](crate::Event::Embedding)
/// before the end.
#[derive(Debug)]
pub struct EmbedRequest(pub(crate) GenerateRequest);

impl EmbedRequest {
    /// Checks everything that can be known before the engine has it.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn new(
        model: &LoadedModel,
        tokens: Vec<u32>,
        priority: Priority,
        cancel: CancelToken,
    ) -> Result<Self, RequestError> {
        Self::pooled(model, tokens, (Pooling::of(model)?, priority), cancel)
    }

    /// As [`EmbedRequest::new`], gathered in another way than the model's file says.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn pooled(
        model: &LoadedModel,
        tokens: Vec<u32>,
        (pooling, priority): (Pooling, Priority),
        cancel: CancelToken,
    ) -> Result<Self, RequestError> {
        let options = GenerateOptions {
            priority,
            reuse: match pooling {
                // Every row counts, so every row is computed.
                Pooling::Mean => Reuse::Nothing,
                Pooling::Last => Reuse::OnlyRead,
            },
            ..GenerateOptions::new(tokens, Sampling::greedy(), 1)
        };
        let mut request = GenerateRequest::new(model, options, cancel)?;
        request.pooling = Some(pooling);
        Ok(Self(request))
    }

    /// Where the answer will stand.
    pub fn log(&self) -> Arc<TurnLog> {
        self.0.log()
    }
}

/// The rows of a text as they come.
#[derive(Clone, PartialEq)]
pub(crate) struct Gathered {
    pooling: Pooling,
    /// Of all rows so far, or the last one; in float64, so that the order of sums does not show.
    sum: Vec<f64>,
}

impl fmt::Debug for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered")
            .field("pooling", &self.pooling)
            .finish_non_exhaustive()
    }
}

impl Gathered {
    pub(crate) fn new(pooling: Pooling) -> Self {
        let sum = Vec::new();
        Self { pooling, sum }
    }

    pub(crate) fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// Forgets all rows: the text is read again.
    pub(crate) fn clear(&mut self) {
        self.sum.clear();
    }

    /// Takes the next rows.
    pub(crate) fn take(&mut self, rows: &[RowOutput]) {
        for row in rows {
            let RowOutput::Hidden(values) = row else {
                continue;
            };
            if self.pooling == Pooling::Last {
                self.sum.clear();
            }
            self.sum.resize(values.len(), 0.0);
            for (sum, value) in self.sum.iter_mut().zip(values) {
                *sum += f64::from(*value);
            }
        }
    }

    /// The vector, of length 1. The mean and the sum have one direction.
    pub(crate) fn finish(&self) -> Arc<[f32]> {
        let square: f64 = self.sum.iter().map(|value| value * value).sum();
        let scale = if square > 0.0 {
            square.sqrt().recip()
        } else {
            0.0
        };
        self.sum
            .iter()
            .map(|value| (value * scale) as f32)
            .collect()
    }
}

#[cfg(test)]
mod tests;
