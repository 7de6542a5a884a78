//! Ollama's paths.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use candor_app::service::{Described, Listed, Opened, wanted_id};
use serde_json::{Value, json};

use super::{computed, respond};
use crate::ask::ask;
use crate::body;
use crate::fault::{Api, Fault, FaultKind};
use crate::shared::Shared;
use crate::stream::{stream, whole};
use crate::wire::fields::Fields;
use crate::wire::ollama::{self, Kind, Lines};

/// The version of the protocol that is imitated. Clients compare it with what they need.
const VERSION: &str = "0.12.0";

/// A time that never comes: what is loaded stays until something else is asked for.
const NEVER: &str = "9999-12-31T00:00:00Z";

/// `GET /api/version`
pub(super) async fn version(State(shared): State<Shared>) -> Response {
    let own = json!({ "version": VERSION, "candor": { "version": shared.config.version } });
    Json(own).into_response()
}

/// `GET /api/tags`
pub(super) async fn tags(State(shared): State<Shared>) -> Response {
    let listed = super::listed(&shared).await;
    // The beginnings of files that were not seen before are read.
    let tags = tokio::task::spawn_blocking(move || -> Vec<Value> {
        listed.iter().map(|listed| tag(&shared, listed)).collect()
    });
    Json(json!({ "models": tags.await.unwrap_or_default() })).into_response()
}

/// `GET /api/ps`
pub(super) async fn ps(State(shared): State<Shared>) -> Response {
    let opened = shared.source.opened();
    let listed = super::listed(&shared).await;
    let digest = |id: &str| {
        let found = listed.iter().find(|listed| listed.id == id);
        found.map(Listed::digest).unwrap_or_default()
    };
    let models: Vec<Value> = opened
        .iter()
        .map(|opened| {
            let loaded = opened.loaded();
            let bytes = loaded.footprint.total_bytes();
            let on_card = opened.computed().served() == "gpu";
            json!({
                "name": opened.id,
                "model": opened.id,
                "size": bytes,
                "size_vram": if on_card { bytes } else { 0 },
                "digest": digest(&opened.id),
                "details": details(&described(opened)),
                "expires_at": NEVER,
                "context_length": loaded.ctx_len,
                "candor": { "backend": computed::json(&opened.computed()) },
            })
        })
        .collect();
    Json(json!({ "models": models })).into_response()
}

fn tag(shared: &Shared, listed: &Listed) -> Value {
    let modified_ms = i64::try_from(listed.modified_s)
        .unwrap_or(0)
        .saturating_mul(1_000);
    json!({
        "name": listed.id,
        "model": listed.id,
        "modified_at": ollama::time(modified_ms),
        "size": listed.size_bytes,
        "digest": listed.digest(),
        "details": details(&shared.described.of(listed)),
    })
}

/// What is said of a model's kind; of a file that cannot be read only its form.
fn details(described: &Described) -> Value {
    let family = described.architecture.as_str();
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": if family.is_empty() { Vec::new() } else { vec![family] },
        "parameter_size": described.size(),
        "quantization_level": described.quantization,
    })
}

fn described(opened: &Opened) -> Described {
    Described::of(opened.loaded().model.file.index())
}

/// `POST /api/show`
pub(super) async fn show(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let body = body::json(request).await?;
        let fields = Fields::of_body(&body)?;
        let name = match fields.text("model")? {
            Some(name) => Some(name),
            None => fields.text("name")?,
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(fields.wrong("model", "is missing"));
        };
        let listed = super::listed(&shared).await;
        let found = listed.iter().find(|listed| listed.id == wanted_id(name));
        let Some(found) = found else {
            return Err(Fault::new(
                FaultKind::NoModel,
                format!("model '{name}' not found"),
            ));
        };
        // The beginning of the file says it, whether it is loaded or not.
        let (found, shared) = (found.clone(), shared.clone());
        let shown = tokio::task::spawn_blocking(move || {
            let described = shared.described.of(&found);
            shown(&found, &described)
        });
        let broken = |_| Fault::new(FaultKind::Internal, "the request broke down");
        Ok(Json(shown.await.map_err(broken)?).into_response())
    };
    respond(Api::Ollama, answer.await)
}

fn shown(listed: &Listed, described: &Described) -> Value {
    let mut info = serde_json::Map::new();
    let architecture = &described.architecture;
    if !architecture.is_empty() {
        info.insert(String::from("general.architecture"), json!(architecture));
        info.insert(
            String::from("general.parameter_count"),
            json!(described.parameters),
        );
        info.insert(
            format!("{architecture}.context_length"),
            json!(described.context),
        );
    }
    let mut can = vec!["completion"];
    if described.template.contains("tools") {
        can.push("tools");
    }
    if described.template.contains("</think>") {
        can.push("thinking");
    }
    let modified_ms = i64::try_from(listed.modified_s)
        .unwrap_or(0)
        .saturating_mul(1_000);
    json!({
        "modelfile": "",
        "parameters": "",
        "template": described.template,
        "details": details(described),
        "model_info": info,
        "capabilities": can,
        "modified_at": ollama::time(modified_ms),
    })
}

/// `POST /api/chat`
pub(super) async fn chat(State(shared): State<Shared>, request: Request) -> Response {
    respond(Api::Ollama, answer(&shared, request, Kind::Chat).await)
}

/// `POST /api/generate`
pub(super) async fn generate(State(shared): State<Shared>, request: Request) -> Response {
    respond(Api::Ollama, answer(&shared, request, Kind::Generate).await)
}

async fn answer(shared: &Shared, request: Request, kind: Kind) -> Result<Response, Fault> {
    let body = body::json(request).await?;
    let wanted = match kind {
        Kind::Chat => ollama::chat_request(&body)?,
        Kind::Generate => ollama::generate_request(&body)?,
    };
    drop(body);
    let Some(wish) = wanted.ask else {
        return without_words(shared, wanted, kind).await;
    };
    let mut answering = ask(shared, wish).await?;
    if wanted.unloads {
        shared.unload_soon(&answering.opened.id);
    }
    if wanted.streams {
        return Ok(stream(answering, Lines::new(kind)));
    }
    let replies = whole(&mut answering).await?;
    let reply = super::only(&replies)?;
    Ok(Json(ollama::answer(&answering, kind, reply)).into_response())
}

/// Loads or unloads a model.
async fn without_words(
    shared: &Shared,
    wanted: ollama::Request,
    kind: Kind,
) -> Result<Response, Fault> {
    let now_ms = shared.now_ms();
    if wanted.unloads {
        let Some(name) = wanted.model else {
            return Err(Fault::field("model", "is missing: what is to be unloaded?"));
        };
        let is_gone = unload(shared, &name).await?;
        return Ok(Json(ollama::without_words(kind, &name, now_ms, is_gone)).into_response());
    }
    let json = super::plain::with_model(shared, wanted.model, move |opened| {
        Ok(ollama::without_words(kind, &opened.id, now_ms, false))
    });
    Ok(Json(json.await?).into_response())
}

/// Gives the memory of the model of this name back, and of no other; whether it has none now, or
/// will have none once the last who uses it has left.
async fn unload(shared: &Shared, name: &str) -> Result<bool, Fault> {
    let id = wanted_id(name);
    let listed = super::listed(shared).await;
    let opened = shared.source.opened().filter(|opened| opened.id == id);
    if opened.is_none() {
        if listed.iter().any(|listed| listed.id == id) {
            return Ok(true);
        }
        let message = format!("model '{name}' not found");
        return Err(Fault::new(FaultKind::NoModel, message));
    }
    if !shared.source.unloads_on_request() {
        return Ok(false);
    }
    // Somebody else's reply is not ended for it: then the last who leaves gives it back.
    shared.unload_soon(&id);
    if let Some(id) = shared.unloads_now() {
        let source = std::sync::Arc::clone(&shared.source);
        tokio::task::spawn_blocking(move || source.unload(Some(&id)))
            .await
            .ok();
    }
    Ok(true)
}

/// Paths that would fetch, make or change models.
pub(super) async fn not_here(request: Request) -> Response {
    let path = request.uri().path();
    let message = format!("{path} is not supported: models are managed in Candor itself");
    Fault::new(FaultKind::Unsupported, message).response(Api::Ollama)
}
