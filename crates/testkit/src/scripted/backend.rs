//! Loading, as scripted.

use std::sync::Arc;

use candor_backend::{
    Backend, DeviceInfo, DeviceKind, LoadError, Loaded, Model, OpenError, OpenOptions, Part,
    Progress, Session, Step, Unavailable, Unsupported,
};

use super::Script;
use super::plan::LoadFault;
use super::session::ScriptedSession;

/// What scripted weights claim to take.
const WEIGHTS_BYTES: u64 = 1_000_000;

/// A backend that follows a [`Script`].
#[derive(Debug)]
pub struct ScriptedBackend {
    script: Script,
}

struct ScriptedLoaded {
    script: Script,
    model: Arc<Model>,
}

impl ScriptedBackend {
    pub(super) fn new(script: Script) -> Self {
        Self { script }
    }
}

impl Backend for ScriptedBackend {
    fn probe(&self) -> Result<DeviceInfo, Unavailable> {
        let plan = &self.script.lock().plan;
        if let Some(why) = &plan.unavailable {
            return Err(why.clone());
        }
        let name = match plan.kind {
            DeviceKind::Cpu => "Scripted processor",
            DeviceKind::Gpu => "Scripted card",
        };
        Ok(DeviceInfo {
            kind: plan.kind,
            name: String::from(name),
            isa: String::from("none"),
            threads: 1,
            memory_bytes: None,
        })
    }

    fn supports(
        &self,
        _graph: &candor_arch::Graph,
        _index: &candor_modelfile::Index,
        _options: &OpenOptions,
    ) -> Vec<Unsupported> {
        self.script.lock().plan.missing.clone()
    }

    fn load(
        &mut self,
        model: Arc<Model>,
        _part: Part,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Loaded>, LoadError> {
        self.script.lock().counts.weights_alive += 1;
        // Counts down again when dropped, also where the load ends early.
        let loaded = Box::new(ScriptedLoaded {
            script: self.script.clone(),
            model,
        });
        let (reports, fault) = {
            let mut state = self.script.lock();
            (state.plan.load_reports, state.plan.load_fault.take())
        };
        for report in 0..reports {
            let done = WEIGHTS_BYTES * report as u64 / reports as u64;
            let mut stopped = || {
                self.script.lock().counts.load_reports += 1;
                progress.report(done, WEIGHTS_BYTES) == Step::Stop
            };
            if stopped() {
                return Err(LoadError::Stopped);
            }
            match fault
                .filter(|(at, _)| *at == report)
                .map(|(_, fault)| fault)
            {
                Some(LoadFault::Stall) => {
                    self.script.stall(&mut stopped);
                    if stopped() {
                        return Err(LoadError::Stopped);
                    }
                }
                Some(LoadFault::Panic) => panic!("a planned panic in a load"),
                Some(LoadFault::OutOfMemory) => {
                    return Err(LoadError::OutOfMemory {
                        needed_bytes: WEIGHTS_BYTES,
                        available_bytes: WEIGHTS_BYTES / 2,
                    });
                }
                None => {}
            }
        }
        Ok(loaded)
    }
}

impl Loaded for ScriptedLoaded {
    fn open(&self, options: OpenOptions) -> Result<Box<dyn Session>, OpenError> {
        let vocabulary = self.model.graph.hparams.vocabulary;
        Ok(Box::new(ScriptedSession::new(
            self.script.clone(),
            options,
            vocabulary,
        )))
    }

    fn weights_bytes(&self) -> u64 {
        WEIGHTS_BYTES
    }

    fn model(&self) -> &Arc<Model> {
        &self.model
    }
}

impl Drop for ScriptedLoaded {
    fn drop(&mut self) {
        self.script.lock().counts.weights_alive -= 1;
    }
}
