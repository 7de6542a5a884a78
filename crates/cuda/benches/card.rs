//! What a card does in a second: `card [--small|--simulated] [--load-only] [MODEL...]` prints a table
//! in Markdown, of which the script of `cargo xtask gpu-bundle` takes the rows into its own.
//!
//! Rates of every storage type when a vector is multiplied, and of each model: how fast replies are
//! written, with captured launches and step by step, behind contexts of several lengths; how fast
//! prompts are read; how long a stop takes. With `--small` everything is small, as a simulated card
//! can do it, and with `--simulated` it also runs on one: the figures then say nothing, and the
//! program is known to run.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use candor_arch::{GraphBuilder, Node, Op};
use candor_backend::{
    Backend, Batch, CancelToken, KvType, Loaded, Model, OpenOptions, Outcome, Part, Precision,
    Progress, Session, SlotId, Step, Want,
};
use candor_cuda::{CudaBackend, CudaDevice};
use candor_modelfile::ModelFile;
use candor_quant::QuantType;
use candor_testkit::TinyModel;
use candor_testkit::gguf::{Gguf, Tensor, Value};

type Answer<T> = Result<T, Box<dyn Error>>;

const SLOT: SlotId = SlotId(0);

/// Questions that are timed together.
const QUESTIONS: usize = 2_000;

/// How much is measured.
pub(crate) struct Scale {
    /// Outputs and inputs of a matrix.
    width: usize,
    /// Products one after the other in a token.
    products: usize,
    /// Matrices of so many bytes together take turns: no cache holds what comes again.
    weights_bytes: usize,
    repeats: usize,
    /// Tokens written.
    written: usize,
    /// Rows read together while a context is filled.
    chunk: usize,
    pub(crate) contexts: &'static [usize],
    pub(crate) prompts: &'static [usize],
    stops: usize,
}

/// A card.
pub(crate) const REAL: Scale = Scale {
    width: 16_384,
    products: 32,
    // Four times the largest cache of a card of today.
    weights_bytes: 512 << 20,
    repeats: 20,
    written: 64,
    chunk: 512,
    contexts: &[128, 4_096, 16_384],
    prompts: &[512, 4_096],
    stops: 20,
};

/// A simulated one.
pub(crate) const SMALL: Scale = Scale {
    width: 512,
    products: 3,
    weights_bytes: 256 << 10,
    repeats: 1,
    written: 2,
    chunk: 12,
    contexts: &[16],
    prompts: &[24],
    stops: 1,
};

/// What takes a row of the table: what was measured, what was found, and what it is to be held against.
pub(crate) type Rows<'a> = &'a mut dyn FnMut(&str, String, String);

fn main() -> Answer<()> {
    // `cargo bench` adds a word of its own.
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let (flags, models): (Vec<String>, Vec<String>) =
        words.partition(|word| word.starts_with("--"));
    let is_given = |name: &str| flags.iter().any(|flag| flag == name);
    if is_given("--simulated") {
        let _ = simcuda::load_here("");
    }
    let scale = match is_given("--simulated") || is_given("--small") {
        true => SMALL,
        false => REAL,
    };
    let device = device()?;
    println!("Card: {} ({} bytes)\n", device.name, device.total_bytes);
    println!("| what | found | beside |\n|---|---|---|");
    let mut rows = |what: &str, found: String, beside: String| {
        println!("| {what} | {found} | {beside} |");
    };
    let paths = models.iter().map(Path::new);
    if is_given("--load-only") {
        for path in paths {
            let model = model_at(path)?;
            loaded(&device, (&model, path), &mut rows)?;
        }
        return Ok(());
    }
    measure(&device, &scale, &paths.collect::<Vec<_>>(), &mut rows)
}

/// All that is measured of a card and of models on it.
pub(crate) fn measure(
    device: &CudaDevice,
    scale: &Scale,
    models: &[&Path],
    rows: Rows<'_>,
) -> Answer<()> {
    types(device, scale, rows)?;
    models
        .iter()
        .try_for_each(|model| of_model(device, scale, model, &mut *rows))
}

fn device() -> Answer<CudaDevice> {
    let found = candor_cuda::understand(&candor_cuda::probe_child());
    let found = found.map_err(|why| format!("no card: {why:?}"))?;
    Ok(found.into_iter().next().ok_or("no card")?)
}

/// Nobody watches.
struct Unwatched;

impl Progress for Unwatched {
    fn report(&mut self, _done_bytes: u64, _total_bytes: u64) -> Step {
        Step::Go
    }
}

fn load(backend: CudaBackend, model: &Arc<Model>) -> Answer<Box<dyn Loaded>> {
    let mut backend = backend;
    Ok(backend.load(Arc::clone(model), Part::All, &mut Unwatched)?)
}

fn open(loaded: &dyn Loaded, tokens: usize) -> Answer<Box<dyn Session>> {
    let ctx_len = tokens.next_multiple_of(256);
    Ok(loaded.open(OpenOptions {
        ctx_len,
        slots_max: 1,
        state_tokens: ctx_len,
        kv: KvType::F16,
        precision: Precision::Fast,
    })?)
}

fn forward(session: &mut dyn Session, tokens: &[u32], cancel: &CancelToken) -> Answer<Outcome> {
    let batch = Batch::of_slot(SLOT, tokens, Want::Top { k: 1 });
    let ticket = session.submit(&batch, cancel)?;
    Ok(session.collect(ticket, &mut candor_backend::Rows::default())?)
}

/// Reads so many tokens, in chunks.
fn read(
    session: &mut dyn Session,
    (tokens, chunk): (usize, usize),
    cancel: &CancelToken,
) -> Answer<Outcome> {
    let vocabulary = session.vocabulary() as u32;
    let ids: Vec<u32> = (0..tokens as u32).map(|i| i * 7 % vocabulary).collect();
    for chunk in ids.chunks(chunk) {
        if forward(session, chunk, cancel)? == Outcome::Cancelled {
            return Ok(Outcome::Cancelled);
        }
    }
    Ok(Outcome::Done)
}

/// Tokens a second.
fn write(session: &mut dyn Session, tokens: usize) -> Answer<f64> {
    let never = CancelToken::new();
    // The first of a bucket captures.
    forward(session, &[1], &never)?;
    let start = Instant::now();
    for _ in 0..tokens {
        forward(session, &[1], &never)?;
    }
    Ok(tokens as f64 / start.elapsed().as_secs_f64())
}

fn types(device: &CudaDevice, scale: &Scale, rows: Rows<'_>) -> Answer<()> {
    for quant in candor_quant::TYPES {
        let (model, bytes) = chain(quant, scale)?;
        let loaded = load(CudaBackend::new(device.clone()), &model)?;
        let mut session = open(&*loaded, 256)?;
        let rate = write(&mut *session, scale.repeats)?;
        rows(
            &format!("{}, GB/s of its products", quant.name),
            format!("{:.1}", rate * bytes as f64 / 1e9),
            format!("{bytes} bytes a token"),
        );
    }
    Ok(())
}

/// Products with matrices of one type, one after the other; gives the bytes that a token reads.
fn chain(quant: &'static QuantType, scale: &Scale) -> Answer<(Arc<Model>, u64)> {
    let width = scale.width;
    let tiny = tempfile::tempdir()?;
    let path = tiny.path().join("chain.gguf");
    let vocabulary = 64;
    let f32 = candor_quant::by_name("F32").ok_or("F32")?;
    let mut tensors = vec![
        tensor("token_embd.weight", f32, (vocabulary, width))?,
        tensor("output.weight", f32, (vocabulary, width))?,
    ];
    let mut builder = GraphBuilder::new(&|_| true);
    let table = builder.matrix("token_embd.weight", vocabulary, width);
    let node = |name: String, op, inputs, width| Node {
        name,
        op,
        inputs,
        layer: None,
        width,
    };
    let bytes = quant.bytes_for(width * width).ok_or("whole blocks")?;
    let matrices = scale.weights_bytes.div_ceil(bytes).min(scale.products);
    let weights: Vec<_> = (0..matrices)
        .map(|i| {
            let name = format!("m{i}.weight");
            tensors.push(tensor(&name, quant, (width, width))?);
            Ok(builder.matrix(&name, width, width))
        })
        .collect::<Answer<_>>()?;
    let mut last = builder.node(node("embed".into(), Op::Embed { table }, vec![], width));
    for i in 0..scale.products {
        let weight = weights[i % matrices];
        let op = Op::Linear { weight, bias: None };
        last = builder.node(node(format!("product{i}"), op, vec![last], width));
    }
    let weight = builder.matrix("output.weight", vocabulary, width);
    let logits = Op::Logits {
        weight,
        softcap: None,
    };
    builder.node(node("logits".into(), logits, vec![last], vocabulary));
    let gguf = Gguf {
        metadata: vec![("general.architecture".to_owned(), Value::from("llama"))],
        tensors,
        ..Gguf::default()
    };
    std::fs::write(&path, gguf.encode().bytes)?;
    let file = ModelFile::open(&path)?;
    let mut hparams = small_hparams(tiny.path())?;
    hparams.vocabulary = vocabulary;
    let graph = builder.finish("llama", hparams);
    // The table and the output are small beside them.
    Ok((
        Arc::new(Model { file, graph }),
        (scale.products * bytes) as u64,
    ))
}

fn small_hparams(folder: &Path) -> Answer<candor_arch::HParams> {
    let path = folder.join("tiny.gguf");
    TinyModel::llama().write(&path)?;
    Ok(candor_arch::build(ModelFile::open(&path)?.index())?.hparams)
}

/// A matrix that keeps the size of what it multiplies; its rows repeat, which no product notices.
fn tensor(name: &str, quant: &QuantType, (rows, cols): (usize, usize)) -> Answer<Tensor> {
    let scale = (3.0 / cols as f32).sqrt();
    let mut random = candor_testkit::Random::named(1, name);
    let values: Vec<f32> = (0..cols).map(|_| random.signed_unit() * scale).collect();
    let mut row = vec![0; quant.bytes_for(cols).ok_or("whole blocks")?];
    (quant.quantize)(&values, &mut row);
    Ok(Tensor {
        name: name.to_owned(),
        dims: vec![rows as u64, cols as u64],
        type_id: quant.id,
        bytes: row.repeat(rows),
    })
}

fn model_at(path: &Path) -> Answer<Arc<Model>> {
    let file = ModelFile::open(path)?;
    let graph = candor_arch::build(file.index())?;
    Ok(Arc::new(Model { file, graph }))
}

fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into()
}

/// Loads a model, and says how long it took.
fn loaded(
    device: &CudaDevice,
    (model, path): (&Arc<Model>, &Path),
    rows: Rows<'_>,
) -> Answer<Box<dyn Loaded>> {
    let start = Instant::now();
    let loaded = load(CudaBackend::new(device.clone()), model)?;
    let took = format!("{:.1} s", start.elapsed().as_secs_f64());
    rows(
        &format!("{}, loaded with its kernels", name_of(path)),
        took,
        String::new(),
    );
    Ok(loaded)
}

fn of_model(device: &CudaDevice, scale: &Scale, path: &Path, rows: Rows<'_>) -> Answer<()> {
    let model = model_at(path)?;
    let name = name_of(path);
    let loaded = loaded(device, (&model, path), rows)?;
    let captured = written(&*loaded, scale)?;
    let mut of_this = |what: &str, found: String, beside: String| {
        rows(&format!("{name}, {what}"), found, beside);
    };
    reading(&*loaded, scale, &mut of_this)?;
    // One at a time: a card may have no room for two.
    drop(loaded);
    let loaded = load(CudaBackend::new(device.clone()).stepwise(), &model)?;
    let stepwise = written(&*loaded, scale)?;
    for ((context, captured), stepwise) in scale.contexts.iter().zip(captured).zip(stepwise) {
        of_this(
            &format!("written a second after {context}"),
            format!("{captured:.1} in graphs"),
            format!("{stepwise:.1} step by step"),
        );
    }
    Ok(())
}

/// Tokens written a second behind each context.
fn written(loaded: &dyn Loaded, scale: &Scale) -> Answer<Vec<f64>> {
    let rate = |context: &usize| {
        let mut session = open(loaded, context + scale.written + 2)?;
        read(&mut *session, (*context, scale.chunk), &CancelToken::new())?;
        write(&mut *session, scale.written)
    };
    scale.contexts.iter().map(rate).collect()
}

/// Microseconds of a question to the card's thread that has next to nothing to do.
fn question(loaded: &dyn Loaded) -> Answer<f64> {
    let mut session = open(loaded, 256)?;
    let start = Instant::now();
    for _ in 0..QUESTIONS {
        session.seek(SLOT, 0)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / QUESTIONS as f64)
}

/// The rows on questions, prompts and stops.
fn reading(loaded: &dyn Loaded, scale: &Scale, rows: Rows<'_>) -> Answer<()> {
    rows(
        "a question to the card's thread, two a token",
        format!("{:.1} µs", question(loaded)?),
        String::new(),
    );
    let never = CancelToken::new();
    for &tokens in scale.prompts {
        let mut session = open(loaded, tokens)?;
        read(&mut *session, (tokens, scale.chunk), &never)?;
        session.reset(SLOT)?;
        let start = Instant::now();
        read(&mut *session, (tokens, scale.chunk), &never)?;
        let rate = tokens as f64 / start.elapsed().as_secs_f64();
        rows(
            &format!("read a second of {tokens}"),
            format!("{rate:.1}"),
            String::new(),
        );
    }
    stops(loaded, scale, rows)
}

/// From the stop of a long prompt to the answer, in milliseconds.
fn stops(loaded: &dyn Loaded, scale: &Scale, rows: Rows<'_>) -> Answer<()> {
    let tokens = scale.prompts.last().copied().unwrap_or(scale.chunk);
    let mut session = open(loaded, tokens)?;
    let mut took = Vec::new();
    for i in 0..scale.stops {
        let cancel = CancelToken::new();
        let theirs = cancel.clone();
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5 + 3 * i as u64));
            theirs.cancel();
            Instant::now()
        });
        let outcome = read(&mut *session, (tokens, scale.chunk), &cancel)?;
        let end = Instant::now();
        let stopped = stopper.join().map_err(|_| "the stopping thread")?;
        if outcome == Outcome::Cancelled {
            took.push(end.saturating_duration_since(stopped).as_secs_f64() * 1e3);
        }
        session.reset(SLOT)?;
    }
    took.sort_by(f64::total_cmp);
    let (found, beside) = match (took.get(took.len() / 2), took.last()) {
        (Some(median), Some(worst)) => (
            format!("median {median:.1} ms of {}", took.len()),
            format!("worst {worst:.1} ms"),
        ),
        _ => (String::from("every prompt was read before"), String::new()),
    };
    rows(&format!("stop of a prompt of {tokens}"), found, beside);
    Ok(())
}
