//! A response as a stream of events.

use candor_app::service::{Part, ToolCall};
use serde_json::{Value, json};

use super::written::{
    call_item, ended, failed, head, message_item, status, text_part, thoughts_item,
};
use crate::ask::Answering;
use crate::course::{End, Finish};
use crate::fault::{Api, Fault};
use crate::stream::Shape;

/// What kind of item is open in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Thoughts,
}

/// An item that is being written.
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

/// A stream of events.
pub(crate) struct Events {
    /// What was asked, and then the response.
    response: Value,
    /// Of an item that is closed now.
    status: &'static str,
    output: Vec<Value>,
    open: Option<Open>,
    /// Events so far.
    number: u64,
    fresh_id: Box<dyn Fn(&str) -> String + Send>,
}

impl Events {
    pub(crate) fn new(asked: Value) -> Self {
        Self {
            response: asked,
            status: "completed",
            output: Vec::new(),
            open: None,
            number: 0,
            fresh_id: Box::new(str::to_owned),
        }
    }

    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.number);
        self.number += 1;
        format!("event: {name}\ndata: {data}\n\n")
    }

    fn place(&self) -> usize {
        self.output.len()
    }

    /// Has an item of this kind open.
    fn within(&mut self, kind: Kind) -> String {
        if self.open.as_ref().is_some_and(|open| open.kind == kind) {
            return String::new();
        }
        let mut events = self.without();
        let (id, item) = match kind {
            Kind::Message => {
                let id = (self.fresh_id)("msg_");
                let item = message_item(&id, "in_progress", None);
                (id, item)
            }
            Kind::Thoughts => {
                let id = (self.fresh_id)("rs_");
                let item = thoughts_item(&id, None);
                (id, item)
            }
        };
        let place = self.place();
        let added = json!({ "output_index": place, "item": item });
        events.push_str(&self.event("response.output_item.added", added));
        let (name, mut part) = match kind {
            Kind::Message => (
                "response.content_part.added",
                json!({ "content_index": 0, "part": text_part("") }),
            ),
            Kind::Thoughts => (
                "response.reasoning_summary_part.added",
                json!({ "summary_index": 0, "part": { "type": "summary_text", "text": "" } }),
            ),
        };
        part["item_id"] = json!(id);
        part["output_index"] = json!(place);
        events.push_str(&self.event(name, part));
        self.open = Some(Open {
            kind,
            id,
            text: String::new(),
        });
        events
    }

    fn words(&mut self, kind: Kind, text: &str) -> String {
        let mut events = self.within(kind);
        let place = self.place();
        let Some(open) = &mut self.open else {
            return events;
        };
        open.text.push_str(text);
        let mut data = json!({ "item_id": open.id, "output_index": place, "delta": text });
        let name = match kind {
            Kind::Message => {
                data["content_index"] = json!(0);
                data["logprobs"] = json!([]);
                "response.output_text.delta"
            }
            Kind::Thoughts => {
                data["summary_index"] = json!(0);
                "response.reasoning_summary_text.delta"
            }
        };
        events.push_str(&self.event(name, data));
        events
    }

    /// Has no item open.
    fn without(&mut self) -> String {
        let Some(Open { kind, id, text }) = self.open.take() else {
            return String::new();
        };
        let place = self.place();
        let at = |mut data: Value| {
            data["item_id"] = json!(id);
            data["output_index"] = json!(place);
            data
        };
        let mut events = String::new();
        let item = match kind {
            Kind::Message => {
                let done = at(json!({ "content_index": 0, "text": text, "logprobs": [] }));
                events.push_str(&self.event("response.output_text.done", done));
                let done = at(json!({ "content_index": 0, "part": text_part(&text) }));
                events.push_str(&self.event("response.content_part.done", done));
                message_item(&id, self.status, Some(&text))
            }
            Kind::Thoughts => {
                let done = at(json!({ "summary_index": 0, "text": text }));
                events.push_str(&self.event("response.reasoning_summary_text.done", done));
                let part = json!({ "type": "summary_text", "text": text });
                let done = at(json!({ "summary_index": 0, "part": part }));
                events.push_str(&self.event("response.reasoning_summary_part.done", done));
                thoughts_item(&id, Some(&text))
            }
        };
        events.push_str(&self.done(item));
        events
    }

    fn done(&mut self, item: Value) -> String {
        let data = json!({ "output_index": self.place(), "item": item });
        self.output.push(item);
        self.event("response.output_item.done", data)
    }

    fn call(&mut self, call: &ToolCall) -> String {
        let mut events = self.without();
        let (id, call_id) = ((self.fresh_id)("fc_"), (self.fresh_id)("call_"));
        let item = call_item(&id, &call_id, call);
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        begun["arguments"] = json!("");
        let place = self.place();
        let added = json!({ "output_index": place, "item": begun });
        events.push_str(&self.event("response.output_item.added", added));
        let delta = json!({ "item_id": id, "output_index": place, "delta": call.arguments });
        events.push_str(&self.event("response.function_call_arguments.delta", delta));
        let done = json!({
            "item_id": id, "output_index": place, "name": call.name, "arguments": call.arguments,
        });
        events.push_str(&self.event("response.function_call_arguments.done", done));
        events.push_str(&self.done(item));
        events
    }
}

impl Shape for Events {
    const CONTENT_TYPE: &'static str = "text/event-stream";

    fn begin(&mut self, answering: &Answering) -> String {
        let shared = answering.shared.clone();
        self.fresh_id = Box::new(move |prefix| shared.fresh_id(prefix));
        self.response = head(answering, &(self.fresh_id)("resp_"), self.response.take());
        let data = json!({ "response": self.response });
        let mut events = self.event("response.created", data.clone());
        events.push_str(&self.event("response.in_progress", data));
        events
    }

    fn part(&mut self, _reply: usize, part: Part) -> String {
        match part {
            Part::Text(text) => self.words(Kind::Message, &text),
            Part::Thinking(text) => self.words(Kind::Thoughts, &text),
            Part::ToolCall(call) => self.call(&call),
            // What was sent cannot be taken back.
            Part::TextWasThinking => String::new(),
        }
    }

    fn end(&mut self, _reply: usize, end: &End, answering: &Answering) -> String {
        self.status = status(end);
        let mut events = self.without();
        let (response, output) = (self.response.take(), std::mem::take(&mut self.output));
        let response = ended(response, output, end, answering);
        let name = match end.finish {
            Finish::Length => "response.incomplete",
            Finish::Stop | Finish::StopString(_) => "response.completed",
        };
        events.push_str(&self.event(name, json!({ "response": response })));
        events
    }

    fn close(&mut self, _answering: &Answering) -> String {
        String::new()
    }

    /// Some clients wait for the error, and some for a last event with the response.
    fn failed(&mut self, fault: &Fault) -> String {
        let error = fault.json(Api::OpenAi)["error"].clone();
        self.status = "incomplete";
        let mut events = self.without();
        let data = json!({
            "code": error["code"], "message": error["message"], "param": error["param"],
        });
        events.push_str(&self.event("error", data));
        let (response, output) = (self.response.take(), std::mem::take(&mut self.output));
        let response = failed(response, output, &error);
        events.push_str(&self.event("response.failed", json!({ "response": response })));
        events
    }

    fn pause(&mut self) -> String {
        String::from(": still here\n\n")
    }
}
