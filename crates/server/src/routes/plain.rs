//! The plain paths.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use candor_app::headless::{CancelToken, Ends, Show};
use candor_app::service::{NotAsked, Opened};
use serde_json::{Value, json};

use super::respond;
use crate::ask::{CancelOnDrop, ask};
use crate::body;
use crate::fault::{Api, Fault, FaultKind};
use crate::shared::Shared;
use crate::stream::{stream, whole};
use crate::wire::plain::{self, Texts};

/// `POST /generate`
pub(super) async fn generate(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let (wanted, streams) = plain::generate_request(&body::json(request).await?)?;
        let mut answering = ask(&shared, wanted).await?;
        if streams {
            return Ok(stream(answering, Texts));
        }
        let replies = whole(&mut answering).await?;
        let reply = super::only(&replies)?;
        Ok(Json(plain::answer(&answering, reply)).into_response())
    };
    respond(Api::OpenAi, answer.await)
}

/// `POST /tokenize`
pub(super) async fn tokenize(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let (model, text, adds) = plain::tokenize_request(&body::json(request).await?)?;
        let ends = if adds { Ends::Model } else { Ends::None };
        let json = with_model(&shared, model, move |opened| {
            let ids = opened.encode(&text, ends).map_err(NotAsked::Text)?;
            Ok(json!({ "ids": ids, "count": ids.len(), "model": opened.id }))
        });
        Ok(Json(json.await?).into_response())
    };
    respond(Api::OpenAi, answer.await)
}

/// `POST /detokenize`
pub(super) async fn detokenize(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let (model, ids) = plain::detokenize_request(&body::json(request).await?)?;
        let json = with_model(&shared, model, move |opened| {
            let tokenizer = opened.tokenizer();
            let vocabulary = opened.loaded().vocabulary;
            if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
                let what = format!("has {id}, which is outside the vocabulary of {vocabulary}");
                return Err(Fault::field("ids", &what));
            }
            let pieces = ids.iter().map(|id| tokenizer.piece(*id, Show::Control));
            let bytes: Vec<u8> = pieces.flatten().copied().collect();
            let text = String::from_utf8_lossy(&bytes);
            Ok(json!({ "text": text, "model": opened.id }))
        });
        Ok(Json(json.await?).into_response())
    };
    respond(Api::OpenAi, answer.await)
}

/// Something that a model's text side answers, off the threads that translate. The request counts
/// as one that waits: a model may have to be loaded for it.
pub(super) async fn with_model(
    shared: &Shared,
    model: Option<String>,
    work: impl FnOnce(&Opened) -> Result<Value, Fault> + Send + 'static,
) -> Result<Value, Fault> {
    let place = crate::ask::enter(shared, 1)?;
    let cancel = CancelOnDrop(CancelToken::new());
    let token = cancel.0.clone();
    let source = Arc::clone(&shared.source);
    let done = tokio::task::spawn_blocking(move || {
        let _place = place;
        work(&*source.open(model.as_deref(), &token)?)
    });
    let broken = |_| Err(Fault::new(FaultKind::Internal, "the request broke down"));
    done.await.unwrap_or_else(broken)
}
