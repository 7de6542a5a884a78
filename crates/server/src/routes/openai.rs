//! OpenAI's paths.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use candor_app::service::{Listed, wanted_id};
use serde_json::{Value, json};

use super::{computed, respond};
use crate::ask::{Answering, ask};
use crate::body;
use crate::fault::{Api, Fault, FaultKind};
use crate::shared::Shared;
use crate::stream::{Whole, stream, whole};
use crate::wire::openai::{
    self, Chunks, Kind, chat_answer, chat_request, completion_answer, completion_request,
};
use crate::wire::responses;

/// `GET /v1/models`
pub(super) async fn models(State(shared): State<Shared>) -> Response {
    let listed = super::listed(&shared).await;
    let data: Vec<Value> = listed
        .iter()
        .map(|listed| model_json(&shared, listed))
        .collect();
    Json(json!({ "object": "list", "data": data })).into_response()
}

/// `GET /v1/models/{id}`
pub(super) async fn model(
    State(shared): State<Shared>,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    // No model has a name that is no text.
    let id = id.map_or_else(|_| String::from("\u{fffd}"), |Path(id)| id);
    let listed = super::listed(&shared).await;
    let found = listed.iter().find(|listed| listed.id == wanted_id(&id));
    let answered = found
        .map(|listed| Json(model_json(&shared, listed)).into_response())
        .ok_or_else(|| {
            Fault::new(
                FaultKind::NoModel,
                format!("there is no model named `{id}`"),
            )
        });
    respond(Api::OpenAi, answered)
}

fn model_json(shared: &Shared, listed: &Listed) -> Value {
    let opened = shared
        .source
        .opened()
        .filter(|opened| opened.id == listed.id);
    let backend = opened
        .as_ref()
        .map(|opened| computed::json(&opened.computed()));
    json!({
        "id": listed.id,
        "object": "model",
        "created": listed.modified_s,
        "owned_by": "candor",
        "candor": {
            "loaded": opened.is_some(),
            "context_length": opened.as_ref().map(|opened| opened.loaded().ctx_len),
            "backend": backend,
        },
    })
}

/// `POST /v1/chat/completions`
pub(super) async fn chat(State(shared): State<Shared>, request: Request) -> Response {
    let answered = answer(&shared, request, Kind::Chat).await;
    respond(Api::OpenAi, answered)
}

/// `POST /v1/completions`
pub(super) async fn completion(State(shared): State<Shared>, request: Request) -> Response {
    let answered = answer(&shared, request, Kind::Completion).await;
    respond(Api::OpenAi, answered)
}

/// `POST /v1/responses`
pub(super) async fn responses(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let wanted = responses::request(&body::json(request).await?)?;
        let mut answering = ask(&shared, wanted.ask).await?;
        if wanted.streams {
            return Ok(stream(answering, responses::Events::new(wanted.asked)));
        }
        let replies = whole(&mut answering).await?;
        let reply = super::only(&replies)?;
        Ok(Json(responses::answer(&answering, reply, wanted.asked)).into_response())
    };
    respond(Api::OpenAi, answer.await)
}

async fn answer(shared: &Shared, request: Request, kind: Kind) -> Result<Response, Fault> {
    let body = body::json(request).await?;
    let (read, write): (ReadRequest, WriteAnswer) = match kind {
        Kind::Chat => (chat_request, chat_answer),
        Kind::Completion => (completion_request, completion_answer),
    };
    let request = read(&body)?;
    drop(body);
    let mut answering = ask(shared, request.ask).await?;
    if request.streams {
        return Ok(stream(answering, Chunks::new(kind, request.tells_usage)));
    }
    let replies = whole(&mut answering).await?;
    Ok(Json(write(&answering, &replies)).into_response())
}

type ReadRequest = fn(&Value) -> Result<openai::Request, Fault>;
type WriteAnswer = fn(&Answering, &[Whole]) -> Value;
