//! Anthropic's paths.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::respond;
use crate::ask::{Input, ask, conversation, options};
use crate::body;
use crate::fault::{Api, Fault, FaultKind};
use crate::shared::Shared;
use crate::stream::{stream, whole};
use crate::wire::anthropic::{self, Events};
use crate::wire::fields::Fields;

/// `POST /v1/messages`
pub(super) async fn messages(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let wanted = anthropic::request(&body::json(request).await?)?;
        let named = wanted.ask.stop.clone();
        let mut answering = ask(&shared, wanted.ask).await?;
        if wanted.streams {
            return Ok(stream(answering, Events::new(named)));
        }
        let replies = whole(&mut answering).await?;
        let reply = super::only(&replies)?;
        Ok(Json(anthropic::answer(&answering, reply, &named)).into_response())
    };
    respond(Api::Anthropic, answer.await)
}

/// `POST /v1/messages/count_tokens`
pub(super) async fn count_tokens(State(shared): State<Shared>, request: Request) -> Response {
    let answer = async {
        let body = body::json(request).await?;
        let wanted = anthropic::conversation(&Fields::of_body(&body)?)?;
        let Input::Chat(chat) = wanted.input else {
            return Err(Fault::new(FaultKind::Internal, "there is no conversation"));
        };
        let options = options(&shared, &chat);
        let json = super::plain::with_model(&shared, wanted.model, move |opened| {
            let mut chat = chat;
            let rendered = conversation(opened, &mut chat, &options)?;
            Ok(json!({ "input_tokens": rendered.ids.len() }))
        });
        Ok(Json(json.await?).into_response())
    };
    respond(Api::Anthropic, answer.await)
}
