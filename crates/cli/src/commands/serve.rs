//! `candor serve`: the local server.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use candor_app::headless::Setup;
use candor_app::service::{OnRequest, Source, Standalone};
use candor_server::{
    Access, PORT_DEFAULT, Patience, QUEUE_DEFAULT, ServerConfig, StartError, bind,
};
use serde_json::json;

use crate::args::Common;
use crate::bounds;
use crate::environment;
use crate::failure::{Exit, Failure, Report};
use crate::interrupt::Interrupts;
use crate::output::{Form, Output, notice};
use crate::session::{choose, setup};

/// Most requests that are written at once.
const SLOTS_MAX: usize = 32;

/// Finished conversations whose beginnings are kept for the next that begins so.
const KEPT: usize = 8;

/// Most requests that wait.
const QUEUE_MAX: usize = 1_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model file that answers; others are loaded when they are asked for by name
    model: Option<PathBuf>,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = PORT_DEFAULT)]
    port: u16,
    /// A key that every request has to carry [default: CANDOR_API_KEY, else none]
    #[arg(long, value_name = "K")]
    api_key: Option<String>,
    /// Requests that are written at once
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true,
        value_parser = bounds::whole(1, SLOTS_MAX))]
    slots: usize,
    /// Requests that wait beside them; more are told to come back later
    #[arg(long, value_name = "N", default_value_t = QUEUE_DEFAULT, allow_negative_numbers = true,
        value_parser = bounds::whole(0, QUEUE_MAX))]
    queue: usize,
    /// A web page that may call, such as http://localhost:3000; may be given several times
    #[arg(long, value_name = "O")]
    allow_origin: Vec<String>,
    /// A name under which this machine is called; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// A folder of models that may be asked for by name; may be given several times [default:
    /// the program's own, if no model is named]
    #[arg(long, value_name = "D")]
    model_dir: Vec<PathBuf>,
    /// Gives the model's memory back after so many seconds without a request
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true,
        value_parser = bounds::whole(1, u32::MAX))]
    unload_after: Option<u32>,
}

impl Args {
    fn config(&self) -> ServerConfig {
        ServerConfig {
            host: self.host,
            port: self.port,
            access: Access {
                api_key: self.api_key.clone().or_else(environment::api_key),
                origins: self.allow_origin.clone(),
                hosts: self.allow_host.clone(),
            },
            slots: self.slots,
            queue: self.queue,
            unload_after: self
                .unload_after
                .map(|seconds| Duration::from_secs(u64::from(seconds))),
            patience: Patience::default(),
            clock: environment::clock(),
            fresh_seed: Arc::new(environment::fresh_seed),
            version: String::from(env!("CARGO_PKG_VERSION")),
        }
    }

    fn folders(&self, common: &Common) -> Vec<PathBuf> {
        if !self.model_dir.is_empty() || self.model.is_some() {
            return self.model_dir.clone();
        }
        let paths = environment::paths(common.data_dir.clone()).ok();
        paths.iter().map(candor_app::AppPaths::models_dir).collect()
    }
}

pub(crate) fn run(
    args: &Args,
    common: &Common,
    interrupts: &Arc<Interrupts>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let cancel = interrupts.listen()?;
    // Before the model, which may take long: the port is free or it is not.
    let bound = bind(args.config()).map_err(refused)?;
    let choice = choose(common)?;
    let setup = Setup {
        slots: args.slots,
        kept: KEPT,
        ..setup(common, &choice, &environment::clock(), None)
    };
    let files = args.model.iter().cloned().collect();
    let source = Standalone::start(setup, files, args.folders(common), OnRequest::Load);
    let source = source.map_err(|error| {
        let message = format!("the engine could not be started: {error}");
        Failure::from(Report::new(Exit::Failed, "engine", message))
    })?;
    let model = match &args.model {
        Some(path) => {
            let opened = source.load(path, &cancel)?;
            notice(&choice.line(opened.loaded()));
            Some(opened.id.clone())
        }
        None => {
            let count = source.listed().len();
            notice(&format!(
                "No model is loaded; {count} can be asked for by name."
            ));
            None
        }
    };
    let running = bound.serve(Arc::new(source.clone())).map_err(refused)?;
    let (sender, left) = mpsc::channel();
    interrupts.when_idle(Some(Box::new(move || {
        // Whoever would hear it has ended.
        let _ = sender.send(());
    })));
    let address = format!("http://{}", running.address());
    match output.form() {
        Form::Json => output.json(&json!({ "listening": address, "model": model }))?,
        Form::Text => output.line(&format!("Listening on {address}. Ctrl-C ends it."))?,
    }
    output.flush()?;
    if !interrupts.want_to_leave() && !cancel.is_cancelled() {
        // An end of the other side ends the program too.
        left.recv().ok();
    }
    interrupts.when_idle(None);
    running.stop();
    source.shutdown();
    Ok(Exit::Interrupted)
}

fn refused(error: StartError) -> Failure {
    let report = Report::new(Exit::Failed, "listen", error.to_string());
    match error {
        StartError::PortTaken {
            free: Some(port), ..
        } => Report {
            advice: Some(format!("start it with --port {port}")),
            ..report
        }
        .into(),
        _ => report.into(),
    }
}
