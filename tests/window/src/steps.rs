//! What a person does with the window, in the window's own words.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::home::Home;
use crate::wait::{HANG_LIMIT, LOAD_LIMIT, eventually};
use crate::window::Window;

/// The protocol's private character for the Enter key.
const ENTER: &str = "\u{e007}";

/// Likewise for Esc.
const ESCAPE: &str = "\u{e00c}";

/// The replies on the page.
const REPLIES: &str = "[data-testid=message][data-role=assistant]";

/// How often a text that must stand still is looked at, over about half a second.
const LOOKS: u32 = 25;

/// How the last reply stands on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// "writing", "stopped", "finished" and so on.
    pub state: String,
    /// What is to be read.
    pub text: String,
}

/// The banner's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banner {
    /// Which state, as the page marks it.
    pub kind: String,
    /// The words in bold.
    pub state: String,
    /// The rest.
    pub reason: String,
}

impl Window {
    /// Picks a file in the dialog, from the menu of models, which is there at any time.
    ///
    /// # Errors
    /// If a button is missing.
    pub fn pick(&self, home: &Home, path: &Path) -> Result<()> {
        home.answer_the_dialog_with(path)?;
        self.open_menu()?;
        self.click("[data-testid=open-file]")
    }

    /// Opens the menu of models, if it is not open.
    ///
    /// # Errors
    /// If its button is missing.
    pub fn open_menu(&self) -> Result<()> {
        if self.count("[data-testid=model-menu]")? == 0 {
            self.click("[data-testid=model-button]")?;
        }
        self.wait_for("[data-testid=model-menu]")
    }

    /// Clicks a model in the open menu.
    ///
    /// # Errors
    /// If it is not listed exactly once.
    pub fn choose_model(&self, name: &str) -> Result<()> {
        let body = "const found = [...document.querySelectorAll('[data-testid=model-item] button.plain')]
                .filter((button) => button.querySelector('.names span').textContent === arguments[0]);
            if (found.length === 1) found[0].click();
            return found.length;";
        let found = self.script(body, &[json!(name)])?;
        ensure!(found == json!(1), "{name} is listed {found} times");
        Ok(())
    }

    /// Waits until the banner says that a model computes, and the button says which.
    ///
    /// # Errors
    /// If it was refused, or takes too long.
    pub fn wait_for_model(&self, file: &str) -> Result<Banner> {
        // The button leaves the ending out.
        let name = file.trim_end_matches(".gguf");
        let mut seen = String::new();
        let waited = eventually("the banner and the button", LOAD_LIMIT, || {
            let banner = self.banner()?;
            let shown = self.text("[data-testid=model-button]")?.unwrap_or_default();
            seen = format!("{banner:?}, {shown:?}");
            ensure!(banner.kind != "refused", "it was refused");
            let computes = ["cpu", "gpu"].contains(&banner.kind.as_str());
            Ok((computes && shown.contains(name)).then_some(banner))
        });
        waited.with_context(|| format!("{file} is not loaded: {seen}"))
    }

    /// The banner, as it stands.
    ///
    /// # Errors
    /// If there is none: it is always there.
    pub fn banner(&self) -> Result<Banner> {
        let text = |part: &str| {
            let text = self.text(&format!("[data-testid=banner-{part}]"))?;
            Ok::<_, anyhow::Error>(text.unwrap_or_default())
        };
        let kind = self.attribute("[data-testid=banner]", "data-kind")?;
        Ok(Banner {
            kind: kind.context("a banner")?,
            state: text("state")?,
            reason: text("reason")?,
        })
    }

    /// Types a message and presses Enter.
    ///
    /// # Errors
    /// If there is nowhere to type.
    pub fn ask(&self, text: &str) -> Result<()> {
        self.type_into("[data-testid=composer]", &format!("{text}{ENTER}"))
    }

    /// The last reply; none if there is no reply yet.
    ///
    /// # Errors
    /// If the window does not answer.
    pub fn reply(&self) -> Result<Option<Reply>> {
        // In one step, so that state and text belong together.
        let body = "const all = document.querySelectorAll(arguments[0]);
            const last = all[all.length - 1];
            if (!last) return null;
            const text = last.querySelector('[data-testid=reply-text]');
            return [last.dataset.state, text ? text.textContent : ''];";
        let found = self.script(body, &[json!(REPLIES)])?;
        let text = |at: usize| found[at].as_str().map(str::to_owned);
        Ok(text(0)
            .zip(text(1))
            .map(|(state, text)| Reply { state, text }))
    }

    /// How many replies are shown.
    ///
    /// # Errors
    /// If the window does not answer.
    pub fn replies(&self) -> Result<usize> {
        self.count(REPLIES)
    }

    /// Watches the last reply grow to so many characters; each look must show the earlier text
    /// with something added.
    ///
    /// # Errors
    /// If it does not grow, or takes back what it showed.
    pub fn watch_it_grow(&self, chars: usize) -> Result<Reply> {
        let mut seen = Reply::default();
        let mut steps = 0;
        let limit = HANG_LIMIT + LOAD_LIMIT;
        let last = eventually(&format!("{chars} characters of a reply"), limit, || {
            let Some(now) = self.reply()? else {
                return Ok(None);
            };
            // Markdown takes its own signs away once it understands them.
            if now.text.len() > seen.text.len() {
                steps += 1;
            }
            ensure!(
                now.text.len() + 8 >= seen.text.len(),
                "the text shrank from {:?} to {:?}",
                seen.text,
                now.text
            );
            ensure!(
                now.state == "writing" || now.text.chars().count() >= chars,
                "it ended too early: {now:?}"
            );
            // A fast machine may write so many characters between two looks; they must still be
            // seen to become more.
            ensure!(
                now.state == "writing" || steps > 1,
                "the text came at once instead of growing: {now:?}"
            );
            seen = now;
            let enough = steps > 1 && seen.text.chars().count() >= chars;
            Ok(enough.then(|| seen.clone()))
        })?;
        Ok(last)
    }

    /// Clicks Stop, and says how long the page took to show that it was answered: measured in the
    /// page, from the click to the changed mark on the reply.
    ///
    /// # Errors
    /// If it is never answered.
    pub fn stop(&self) -> Result<Duration> {
        let body = "const [replies, limit, done] = arguments;
            const all = document.querySelectorAll(replies);
            const last = all[all.length - 1];
            const start = performance.now();
            const watch = new MutationObserver(() => {
                if (last.dataset.state !== 'writing') {
                    watch.disconnect();
                    done(performance.now() - start);
                }
            });
            watch.observe(last, { attributes: true, attributeFilter: ['data-state'] });
            setTimeout(() => done(-1), limit);
            document.querySelector('[data-testid=stop]').click();";
        let limit = u64::try_from(HANG_LIMIT.as_millis())?;
        let took = self.script_later(body, &[json!(REPLIES), json!(limit)])?;
        match took.as_f64() {
            Some(ms) if ms >= 0.0 => Ok(Duration::from_secs_f64(ms / 1e3)),
            _ => bail!("Stop was not answered within {HANG_LIMIT:?}"),
        }
    }

    /// Presses Esc in the box, and waits until the last reply is no longer being written.
    ///
    /// # Errors
    /// If nothing is written, or it goes on.
    pub fn escape(&self) -> Result<Reply> {
        let writing = self.reply()?.context("a reply")?;
        ensure!(writing.state == "writing", "nothing to stop: {writing:?}");
        self.type_into("[data-testid=composer]", ESCAPE)?;
        self.wait_for_end()?;
        self.stands_still()
    }

    /// Asks, and ends the answer once it has begun: what a model says, and for how long, is its own
    /// affair, and no test waits for a small one that does not find its end.
    ///
    /// # Errors
    /// If no answer begins or ends.
    pub fn answer_to(&self, text: &str) -> Result<Reply> {
        let before = self.replies()?;
        self.ask(text)?;
        self.answer_after(before)
    }

    /// The reply that comes after so many; see [`Window::answer_to`].
    ///
    /// # Errors
    /// If no answer begins or ends.
    pub fn answer_after(&self, replies: usize) -> Result<Reply> {
        eventually("an answer that has begun", LOAD_LIMIT, || {
            let last = self
                .reply()?
                .filter(|_| self.replies().is_ok_and(|now| now > replies));
            Ok(last.filter(|reply| reply.state != "writing" || !reply.text.is_empty()))
        })?;
        self.end_it()
    }

    /// Ends the last reply, unless it has ended by itself: then Esc has nothing to stop.
    ///
    /// # Errors
    /// If it goes on.
    pub fn end_it(&self) -> Result<Reply> {
        self.type_into("[data-testid=composer]", ESCAPE)?;
        self.wait_for_end()?;
        self.stands_still()
    }

    /// Pastes a message, however long, and presses Enter.
    ///
    /// # Errors
    /// If there is nowhere to type.
    pub fn paste(&self, text: &str) -> Result<()> {
        // The driver would type it key by key.
        let body = "const box = document.querySelector('[data-testid=composer]');
            box.value = arguments[0];
            box.dispatchEvent(new InputEvent('input', { bubbles: true }));";
        self.script(body, &[json!(text)])?;
        self.ask("")
    }

    /// Makes sure that the last reply no longer changes.
    ///
    /// # Errors
    /// If it does.
    pub fn stands_still(&self) -> Result<Reply> {
        let first = self.reply()?.context("a reply")?;
        for _ in 0..LOOKS {
            let now = self.reply()?.context("a reply")?;
            ensure!(now == first, "it changed from {first:?} to {now:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(first)
    }

    /// Waits until the last reply has come to its end.
    ///
    /// # Errors
    /// If it never does.
    pub fn wait_for_end(&self) -> Result<Reply> {
        eventually("the reply ends", LOAD_LIMIT, || {
            Ok(self.reply()?.filter(|reply| reply.state != "writing"))
        })
    }

    /// Opens the conversation that is first in the list.
    ///
    /// # Errors
    /// If the list is empty.
    pub fn open_first_conversation(&self) -> Result<()> {
        self.click("[data-testid=conversation-item] .open")?;
        self.wait_for("[data-testid=message]")
    }
}
