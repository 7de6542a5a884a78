//! The paths that turn texts into vectors.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use candor_app::headless::{CancelToken, Ends};
use candor_app::service::{NotAsked, Opened};
use serde_json::{Value, json};

use super::{computed, respond};
use crate::ask::{CancelOnDrop, enter};
use crate::body;
use crate::course::vector;
use crate::fault::{Api, Fault, FaultKind};
use crate::shared::Shared;
use crate::wire::embeddings::{self, Encoding, Text, written};

/// Vectors, and what they came from.
struct Embedded {
    opened: Arc<Opened>,
    vectors: Vec<Vec<f32>>,
    tokens: usize,
}

/// `POST /v1/embeddings`
pub(super) async fn openai(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let wanted = embeddings::request(&body::json(request).await?)?;
        let encoding = wanted.encoding;
        let found = embed(&shared, wanted).await?;
        let data = found.vectors.iter().enumerate().map(|(index, vector)| {
            json!({
                "object": "embedding",
                "index": index,
                "embedding": written(vector, encoding),
            })
        });
        Ok(Json(json!({
            "object": "list",
            "data": data.collect::<Vec<_>>(),
            "model": found.opened.id,
            "usage": { "prompt_tokens": found.tokens, "total_tokens": found.tokens },
            "candor": backend(&found.opened),
        }))
        .into_response())
    };
    respond(Api::OpenAi, answer.await)
}

/// `POST /api/embed`
pub(super) async fn ollama(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let wanted = embeddings::ollama_request(&body::json(request).await?)?;
        let found = embed(&shared, wanted).await?;
        Ok(Json(json!({
            "model": found.opened.id,
            "embeddings": found.vectors,
            "prompt_eval_count": found.tokens,
            "candor": backend(&found.opened),
        }))
        .into_response())
    };
    respond(Api::Ollama, answer.await)
}

/// `POST /api/embeddings`, the older form.
pub(super) async fn ollama_old(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let wanted = embeddings::old_request(&body::json(request).await?)?;
        let found = embed(&shared, wanted).await?;
        let vector = found
            .vectors
            .first()
            .map(|vector| written(vector, Encoding::Floats));
        Ok(Json(json!({ "embedding": vector, "candor": backend(&found.opened) })).into_response())
    };
    respond(Api::Ollama, answer.await)
}

fn backend(opened: &Opened) -> Value {
    json!({ "backend": computed::json(&opened.computed()) })
}

/// Reads the texts one after the other. Dropped before the end, it stops.
async fn embed(shared: &Shared, wanted: embeddings::Request) -> Result<Embedded, Fault> {
    let _place = enter(shared, 1)?;
    let mut reading = Reading {
        shared: shared.clone(),
        was_left: true,
    };
    let found = read(shared, wanted).await;
    reading.was_left = false;
    found
}

/// Counts as abandoned when it is dropped before anything was answered.
struct Reading {
    shared: Shared,
    was_left: bool,
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.was_left {
            self.shared.metrics.abandoned();
        }
    }
}

/// The tokens of a text, at most so many. Of one that is too long the end is left out, but not what
/// the model itself puts there: it may be what a vector is read from.
fn tokens(opened: &Opened, text: Text, max: Option<usize>) -> Result<Vec<u32>, NotAsked> {
    let max = max.unwrap_or(usize::MAX);
    match text {
        Text::Ids(mut ids) => {
            ids.truncate(max);
            Ok(ids)
        }
        Text::Words(text) => {
            let mut ids = opened.encode(&text, Ends::Model).map_err(NotAsked::Text)?;
            if ids.len() > max {
                let words = opened.encode(&text, Ends::None).map_err(NotAsked::Text)?;
                let begin = (0..ids.len()).find(|at| ids[*at..].starts_with(&words));
                let end = ids.split_off(begin.unwrap_or(0) + words.len());
                ids.truncate(max.saturating_sub(end.len()));
                ids.extend(end);
            }
            Ok(ids)
        }
    }
}

async fn read(shared: &Shared, wanted: embeddings::Request) -> Result<Embedded, Fault> {
    let cancel = CancelOnDrop(CancelToken::new());
    let (token, source) = (cancel.0.clone(), Arc::clone(&shared.source));
    let (texts, model, truncates) = (wanted.texts, wanted.model, wanted.truncates);
    let read = tokio::task::spawn_blocking(move || {
        let opened = source.open(model.as_deref(), &token)?;
        let max = truncates.then(|| opened.loaded().ctx_len);
        let ids: Result<Vec<_>, _> = texts
            .into_iter()
            .map(|text| tokens(&opened, text, max))
            .collect();
        Ok::<_, Fault>((Arc::clone(&opened), ids?))
    });
    let broken = |_| Err(Fault::new(FaultKind::Internal, "the request broke down"));
    let (opened, texts) = read.await.unwrap_or_else(broken)?;
    let width = opened.loaded().model.graph.hparams.width;
    if let Some(asked) = wanted.dimensions.filter(|asked| *asked != width) {
        let what = format!("is {asked}; this model gives {width} numbers");
        return Err(Fault::unsupported("dimensions", &what));
    }
    let tokens = texts.iter().map(Vec::len).sum();
    let mut vectors = Vec::with_capacity(texts.len());
    for ids in texts {
        let log = opened.embed(ids, cancel.0.clone())?;
        vectors.push(vector(&log).await?);
    }
    if wanted.unloads {
        shared.unload_soon(&opened.id);
    }
    Ok(Embedded {
        opened,
        vectors,
        tokens,
    })
}
