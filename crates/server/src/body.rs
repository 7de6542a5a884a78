//! The body of a request: read within a size and a time.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header;
use serde_json::Value;

use crate::config::Patience;
use crate::fault::{Fault, FaultKind};

/// Largest body: a conversation that fills the longest context has less than a tenth of it, with
/// every picture and file that is not read here left out.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;

/// The body of a request as JSON.
///
/// # Errors
/// It is too large, too slow, broken off, or no JSON.
pub(crate) async fn json(request: Request) -> Result<Value, Fault> {
    let bytes = bytes(request).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("the body is not JSON: {error}");
        Fault::new(FaultKind::Invalid, message)
    })
}

async fn bytes(request: Request) -> Result<Vec<u8>, Fault> {
    let stated = request.headers().get(header::CONTENT_LENGTH);
    let stated = stated.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if stated.is_some_and(|bytes| bytes > BODY_BYTES_MAX) {
        return Err(too_large());
    }
    // The door has put it there.
    let patience = request.extensions().get::<Patience>().copied();
    let limit = patience.unwrap_or_default().body;
    let read = tokio::time::timeout(limit, read(request.into_body())).await;
    read.unwrap_or_else(|_| {
        let seconds = limit.as_secs_f32();
        let message = format!("the body did not come within {seconds} seconds");
        Err(Fault::new(FaultKind::TimedOut, message))
    })
}

async fn read(mut body: Body) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let Some(frame) = frame else {
            return Ok(bytes);
        };
        let frame = frame.map_err(|error| {
            Fault::new(
                FaultKind::Invalid,
                format!("the body was broken off: {error}"),
            )
        })?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > BODY_BYTES_MAX {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
        }
    }
}

fn too_large() -> Fault {
    let mebibytes = BODY_BYTES_MAX >> 20;
    let message = format!("the body is larger than {mebibytes} MiB");
    Fault::new(FaultKind::BodyTooLarge, message)
}
