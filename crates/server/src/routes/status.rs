//! Whether the server lives, and what it has counted.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::computed;
use crate::shared::Shared;

/// `GET /`
pub(super) async fn hello() -> &'static str {
    "Candor is running. GET /v1/models lists the models.\n"
}

/// `GET /health`: 200 while a model answers or can be loaded, 503 otherwise.
pub(super) async fn health(State(shared): State<Shared>) -> Response {
    let opened = shared.source.opened();
    let (inside, slots) = (shared.gate.inside(), shared.config.slots);
    let source = std::sync::Arc::clone(&shared.source);
    let is_ready = match &opened {
        Some(_) => true,
        None => tokio::task::spawn_blocking(move || !source.listed().is_empty())
            .await
            .unwrap_or(false),
    };
    let backend = opened
        .as_ref()
        .map(|opened| computed::json(&opened.computed()));
    let body = Json(json!({
        "status": if is_ready { "ok" } else { "no model" },
        "model": opened.map(|opened| opened.id.clone()),
        "requests_active": inside.min(slots),
        "requests_waiting": inside.saturating_sub(slots),
        "version": shared.config.version,
        "candor": { "backend": backend },
    }));
    let status = match is_ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, body).into_response()
}

/// `GET /metrics`
pub(super) async fn metrics(
    State(shared): State<Shared>,
) -> ([(HeaderName, &'static str); 1], String) {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    let text = shared
        .metrics
        .text(shared.gate.inside(), shared.config.slots);
    (kind, text)
}
