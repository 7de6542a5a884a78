//! The engine that the window uses, for programs. The app stays its one owner: what a program has
//! loaded is shown there, and the user's own chat comes first.

use std::sync::Arc;

use candor_backend::CancelToken;

use super::standalone::OnRequest;
use super::{LISTED_MAX, Listed, NotOpened, Opened, Source, wanted_id};
use crate::app::App;
use crate::library;
use crate::models::Answerer;

/// The app as programs see it.
#[derive(Clone)]
pub struct OfApp {
    app: App,
    on_request: OnRequest,
}

impl OfApp {
    /// Programs may have other models loaded, or not.
    pub fn new(app: App, on_request: OnRequest) -> Self {
        Self { app, on_request }
    }

    /// Waits for a load that runs, and gives the model that answers then.
    fn answerer(&self, cancel: &CancelToken) -> Result<Arc<Opened>, NotOpened> {
        match self.app.inner.models.answerer(cancel) {
            Answerer::Model(chat, engine) => Ok(Arc::new(Opened::new(
                engine,
                Arc::clone(&chat.loaded),
                Some(Arc::clone(&chat.format)),
                chat.facts.why.clone(),
            ))),
            Answerer::Stopped => Err(NotOpened::Stopped),
            Answerer::None | Answerer::Lost => Err(NotOpened::NoModel),
        }
    }
}

impl Source for OfApp {
    fn listed(&self) -> Vec<Listed> {
        let entries = self.app.models().unwrap_or_default();
        let mut all: Vec<Listed> = Vec::new();
        for entry in entries.into_iter().filter(|entry| !entry.missing) {
            let Ok(path) = library::path_of(&entry.id) else {
                continue;
            };
            let listed = Listed::of(&path, entry.size_bytes.unwrap_or(0.0) as u64);
            if all.len() < LISTED_MAX && !all.iter().any(|other| other.id == listed.id) {
                all.push(listed);
            }
        }
        all
    }

    fn opened(&self) -> Option<Arc<Opened>> {
        let state = self.app.inner.models.state();
        let (chat, seat) = (state.chat()?, state.seat.as_ref()?);
        Some(Arc::new(Opened::new(
            seat.engine.clone(),
            Arc::clone(&chat.loaded),
            Some(Arc::clone(&chat.format)),
            chat.facts.why.clone(),
        )))
    }

    fn open(&self, id: Option<&str>, cancel: &CancelToken) -> Result<Arc<Opened>, NotOpened> {
        let answers = self.answerer(cancel);
        let Some(asked) = id else { return answers };
        if let Ok(opened) = &answers
            && opened.id == wanted_id(asked)
        {
            return answers;
        }
        let listed = self.listed();
        let Some(found) = listed.iter().find(|listed| listed.id == wanted_id(asked)) else {
            return Err(NotOpened::Unknown {
                asked: asked.to_owned(),
                known: listed.into_iter().map(|listed| listed.id).collect(),
            });
        };
        if self.on_request == OnRequest::Refuse {
            return Err(match answers {
                Ok(opened) => NotOpened::NotAllowed {
                    asked: asked.to_owned(),
                    answers: opened.id.clone(),
                },
                Err(none) => none,
            });
        }
        self.app.inner.start_load(&found.path);
        match self.answerer(cancel) {
            Ok(opened) if opened.id == found.id => Ok(opened),
            // Why is for the window to say; a program hears that it was not this model.
            Ok(_) | Err(NotOpened::NoModel) => Err(NotOpened::Refused {
                message: format!("`{asked}` could not be loaded; the window says why"),
            }),
            Err(other) => Err(other),
        }
    }

    fn unload(&self, _id: Option<&str>) {
        // The window's model is the user's, however long no program has asked.
    }

    fn unloads_on_request(&self) -> bool {
        false
    }
}
