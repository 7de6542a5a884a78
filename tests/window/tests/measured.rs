//! What a window costs: until it can be used, while nothing happens, and after many replies. A plain
//! run goes through it once and counts; `cargo xtask soak` repeats it and holds the figures to their
//! limits.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use candor_testkit::TinyModel;
use candor_window_tests::{Family, Home, Requirements, Window};
use serde_json::json;

/// Turns in one call of the page: few enough for the driver's patience.
const TURNS_A_CALL: usize = 10;

/// What is made once, such as caches, is no growth.
const TURNS_FIRST: usize = 100;

/// How long a window may come to rest before it is looked at.
const REST: Duration = Duration::from_secs(5);

/// The page tidies up when it likes, so that its memory goes up and down by far more than it grows: the
/// least of so many looks, a second apart, is what it holds on to.
const TIDYING: usize = 20;

/// What a pasted text may be.
const PASTES: [(&str, &str); 2] = [
    (
        "100,000 characters of code",
        "'let x = f(y); // z\\n'.repeat(5000)",
    ),
    ("1,000,000 characters in one line", "'x'.repeat(1000000)"),
];

/// Settings with which a tiny model answers shortly.
const SHORT: &str = r#"{"sampling": {"temperature": 0, "maxTokens": 8}}"#;

fn tiny(home: &Home) -> Result<String> {
    let path = home.join("tiny.gguf");
    TinyModel::llama().context(2_048).write(&path)?;
    Ok(path.to_string_lossy().into_owned())
}

#[test]
fn a_window_can_be_used_when_it_is_there() -> Result<()> {
    let Some(needs) = Requirements::find("the start of the window") else {
        return Ok(());
    };
    for _ in 0..needs.repeats("CANDOR_STARTS", 1) {
        let home = Home::new()?;
        let window = Window::open(&needs, &home, &[])?;
        let took = window.opened_in().as_secs_f64() * 1e3;
        println!("MEASURED program's start to the usable window: {took:.0}");
        window.type_into("[data-testid=composer]", "a")?;
        let typed = window.script(
            "return document.querySelector('[data-testid=composer]').value",
            &[],
        )?;
        ensure!(typed == json!("a"), "{typed}");
        window.close()?;
    }
    Ok(())
}

#[test]
fn an_open_window_rests() -> Result<()> {
    let Some(needs) = Requirements::find("a window in which nothing happens") else {
        return Ok(());
    };
    let seconds = needs.repeats("CANDOR_IDLE_SECONDS", 1) as u64;
    let home = Home::new()?;
    home.write_settings(SHORT)?;
    let model = tiny(&home)?;
    for (what, words) in [
        ("no model", &[][..]),
        ("a model that has answered", &[model.as_str()]),
    ] {
        let window = Window::open(&needs, &home, words)?;
        if !words.is_empty() {
            window.wait_for_model("tiny")?;
            turns(&window, 1)?;
        }
        sleep(REST.min(Duration::from_secs(seconds)));
        let family = window.family()?;
        ensure!(family.len() > 1, "the page has a process of its own");
        let (start, before) = (Instant::now(), busy(&family)?);
        sleep(Duration::from_secs(seconds));
        let used = busy(&family)?.saturating_sub(before);
        let percent = 100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64();
        println!("MEASURED {seconds} s at rest with {what}, % of one core: {percent:.2}");
        window.close()?;
    }
    Ok(())
}

#[test]
fn many_short_turns_are_answered_in_one_conversation() -> Result<()> {
    let Some(needs) = Requirements::find("many short turns") else {
        return Ok(());
    };
    let home = Home::new()?;
    home.write_settings(SHORT)?;
    let window = Window::open(&needs, &home, &[&tiny(&home)?])?;
    window.wait_for_model("tiny")?;
    let count = needs.repeats("CANDOR_TURNS", TURNS_A_CALL);
    let measured = count > TURNS_FIRST;
    let first = if measured { TURNS_FIRST } else { 1 };
    turns(&window, first)?;
    let family = window.family()?;
    let tidied = if measured { TIDYING } else { 1 };
    let before = least(&family, tidied)?;
    turns(&window, count)?;
    let after = least(&family, tidied)?;
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        println!("  {name}: {before:.1} MB, then {after:.1} MB");
    }
    let sum = |list: &[(String, f64)]| list.iter().map(|(_, mb)| mb).sum::<f64>();
    let grown = sum(&after) - sum(&before);
    println!("MEASURED memory grown over {count} short turns, all processes, MB: {grown:.1}");
    let shown = window.count("[data-testid=conversation-item]")?;
    ensure!(shown == 1, "{shown} conversations");
    window.close()
}

/// Has so many questions answered, one after the other, as a person asks them.
fn turns(window: &Window, count: usize) -> Result<()> {
    let body = "const [count, done] = arguments;
        const all = () => document.querySelectorAll('[data-testid=message][data-role=assistant]');
        const last = () => { const list = all(); return list[list.length - 1]; };
        const box = document.querySelector('[data-testid=composer]');
        let left = count;
        const next = () => {
            if (left === 0) return done(null);
            left -= 1;
            const before = last()?.dataset.id;
            box.value = 'How is the weather today, and how was it yesterday?';
            box.dispatchEvent(new InputEvent('input', { bubbles: true }));
            const enter = { key: 'Enter', bubbles: true, cancelable: true };
            box.dispatchEvent(new KeyboardEvent('keydown', enter));
            const look = () => {
                const reply = last();
                const over = reply && Number(reply.dataset.id) > 0 && reply.dataset.id !== before
                    && reply.dataset.state !== 'writing' && !document.querySelector('[data-testid=stop]');
                if (!over) setTimeout(look, 2);
                else if (['length', 'finished', 'context-full'].includes(reply.dataset.state)) next();
                else done(reply.dataset.state);
            };
            look();
        };
        next();";
    let mut left = count;
    while left > 0 {
        let now = left.min(TURNS_A_CALL);
        let wrong = window.script_later(body, &[json!(now)])?;
        ensure!(wrong.is_null(), "a reply ended as {wrong}");
        left -= now;
    }
    Ok(())
}

#[test]
fn a_long_paste_becomes_a_card_and_typing_goes_on() -> Result<()> {
    let Some(needs) = Requirements::find("a long paste") else {
        return Ok(());
    };
    let home = Home::new()?;
    let window = Window::open(&needs, &home, &[&tiny(&home)?])?;
    window.wait_for_model("tiny")?;
    let rounds = needs.repeats("CANDOR_PASTES", 1);
    for (at, (what, text)) in (0..rounds).flat_map(|_| PASTES).enumerate() {
        // The longest gap between frames from the paste until the card is there and a second on,
        // and then how long a key takes until its frame has been drawn.
        let body = format!(
            "const [cards, done] = arguments;
            const box = document.querySelector('[data-testid=composer]');
            box.focus();
            const transfer = new DataTransfer();
            transfer.setData('text/plain', {text});
            let worst = 0, last = performance.now(), end = null;
            const frame = () => {{
                const now = performance.now();
                worst = Math.max(worst, now - last);
                last = now;
                if (document.querySelectorAll('[data-testid=card]').length > cards) end ??= now + 1000;
                if (end === null || now < end) return requestAnimationFrame(frame);
                const pressed = performance.now();
                box.value += 'y';
                box.dispatchEvent(new InputEvent('input', {{ bubbles: true }}));
                requestAnimationFrame(() => setTimeout(() => done([worst, performance.now() - pressed])));
            }};
            requestAnimationFrame(frame);
            const paste = new ClipboardEvent('paste', {{ clipboardData: transfer, bubbles: true, cancelable: true }});
            box.dispatchEvent(paste);
            if (!paste.defaultPrevented) done('the paste was not taken');"
        );
        let found = window.script_later(&body, &[json!(at)])?;
        let figure = |index: usize| found[index].as_f64().with_context(|| found.to_string());
        println!("MEASURED gap after a paste of {what}: {:.0}", figure(0)?);
        println!(
            "MEASURED key to frame after a paste of {what}: {:.0}",
            figure(1)?
        );
    }
    let cards = window.count("[data-testid=card]")?;
    ensure!(cards == rounds * PASTES.len(), "{cards} cards");
    window.close()
}

fn busy(family: &[Family]) -> Result<Duration> {
    family.iter().map(Family::busy).sum()
}

/// What the processes hold on to, each by its name.
fn least(family: &[Family], looks: usize) -> Result<Vec<(String, f64)>> {
    let mut least: Vec<(String, f64)> = Vec::new();
    for look in 0..looks {
        if look > 0 {
            sleep(Duration::from_secs(1));
        }
        for (at, process) in family.iter().enumerate() {
            let now = process.anonymous_mb()?;
            match least.get_mut(at) {
                Some((_, known)) => *known = known.min(now),
                None => least.push((process.name.clone(), now)),
            }
        }
    }
    Ok(least)
}
