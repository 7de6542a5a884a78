//! The paths, and what each does.

mod anthropic;
pub(crate) mod computed;
mod embeddings;
mod ollama;
mod openai;
mod plain;
mod status;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::response::Response;
use axum::routing::{get, post};

use candor_app::service::Listed;

use crate::door;
use crate::fault::{Api, Fault, FaultKind};
use crate::shared::Shared;
use crate::stream::Whole;

/// All paths, behind the door.
pub(crate) fn router(shared: &Shared) -> Router {
    Router::new()
        .route("/", get(status::hello))
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics))
        .route("/v1/models", get(openai::models))
        .route("/v1/models/{id}", get(openai::model))
        .route("/v1/chat/completions", post(openai::chat))
        .route("/v1/completions", post(openai::completion))
        .route("/v1/embeddings", post(embeddings::openai))
        .route("/api/embed", post(embeddings::ollama))
        .route("/api/embeddings", post(embeddings::ollama_old))
        .route("/v1/responses", post(openai::responses))
        .route("/v1/messages", post(anthropic::messages))
        .route("/v1/messages/count_tokens", post(anthropic::count_tokens))
        .route("/api/version", get(ollama::version))
        .route("/api/tags", get(ollama::tags))
        .route("/api/ps", get(ollama::ps))
        .route("/api/show", post(ollama::show))
        .route("/api/chat", post(ollama::chat))
        .route("/api/generate", post(ollama::generate))
        .route("/api/pull", post(ollama::not_here))
        .route("/api/push", post(ollama::not_here))
        .route("/api/create", post(ollama::not_here))
        .route("/api/copy", post(ollama::not_here))
        .route("/api/delete", axum::routing::delete(ollama::not_here))
        .route("/generate", post(plain::generate))
        .route("/tokenize", post(plain::tokenize))
        .route("/detokenize", post(plain::detokenize))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(shared.clone(), door::pass))
        .with_state(shared.clone())
}

async fn no_route(request: Request) -> Response {
    let path = request.uri().path();
    let fault = Fault::new(
        FaultKind::NoRoute,
        format!("there is no {path} here; docs/server.md lists the paths"),
    );
    fault.response(Api::of_path(path))
}

async fn no_method(request: Request) -> Response {
    let path = request.uri().path();
    let fault = Fault::new(
        FaultKind::Method,
        format!("{path} is not called by {}", request.method()),
    );
    fault.response(Api::of_path(path))
}

/// An answer, or the fault as the protocol writes it.
fn respond(api: Api, answered: Result<Response, Fault>) -> Response {
    answered.unwrap_or_else(|fault| fault.response(api))
}

/// The models that may be asked for; looking may wait for the disk.
async fn listed(shared: &Shared) -> Vec<Listed> {
    let source = Arc::clone(&shared.source);
    let listed = tokio::task::spawn_blocking(move || source.listed());
    // A panic in there leaves nothing to list.
    listed.await.unwrap_or_default()
}

/// The reply to a request that asks for one.
fn only(replies: &[Whole]) -> Result<&Whole, Fault> {
    let nothing = || Fault::new(FaultKind::Internal, "there is no reply");
    replies.first().ok_or_else(nothing)
}
