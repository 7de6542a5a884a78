//! Where in Markdown a growing text is: whether a mark there would be a mark, or an example.

/// Follows a text character by character.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    /// White space at the start of this line, so far.
    indent: usize,
    /// Of a line that began with a fence: its character and how often it came.
    fence: Option<(char, usize)>,
    /// Whether the line's fence still grows.
    fence_grows: bool,
    /// Nothing but white space in this line yet.
    blank: bool,
    /// The fence that encloses this line.
    inside: Option<(char, usize)>,
    /// Whether the line has anything after its fence but white space.
    after_fence: bool,
    /// Between single marks of code in this line.
    in_code: bool,
    last: char,
}

/// More white space before a fence makes it code by indentation.
const FENCE_INDENT_MAX: usize = 3;

/// Signs that a fence has at least.
const FENCE_MIN: usize = 3;

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            indent: 0,
            fence: None,
            fence_grows: false,
            blank: true,
            inside: None,
            after_fence: false,
            in_code: false,
            last: '\n',
        }
    }

    /// Whether a mark here would be part of code.
    pub(super) fn in_code(&self) -> bool {
        let opening = self.fence.is_some_and(|(_, count)| count >= FENCE_MIN);
        self.inside.is_some() || opening || self.in_code || self.last == '`'
    }

    /// Whether the last character was a mark of code.
    pub(super) fn follows_tick(&self) -> bool {
        self.last == '`'
    }

    /// Whether this line has no words yet.
    pub(super) fn is_blank(&self) -> bool {
        self.blank
    }

    pub(super) fn push(&mut self, c: char) {
        if c == '\n' {
            self.end_line();
        } else if self.blank && c.is_whitespace() {
            self.indent += 1;
        } else {
            self.word(c);
        }
        self.last = c;
    }

    fn word(&mut self, c: char) {
        let is_first = std::mem::replace(&mut self.blank, false);
        if is_first && matches!(c, '`' | '~') && self.indent <= FENCE_INDENT_MAX {
            (self.fence, self.fence_grows) = (Some((c, 1)), true);
        } else if let (true, Some((sign, count))) = (self.fence_grows, self.fence)
            && sign == c
        {
            self.fence = Some((sign, count + 1));
        } else {
            self.fence_grows = false;
            self.after_fence |= !c.is_whitespace();
        }
        let is_fence = self.fence.is_some_and(|(_, count)| count >= FENCE_MIN);
        if c == '`' && !is_fence {
            self.in_code = !self.in_code;
        }
    }

    fn end_line(&mut self) {
        let fence = self.fence.filter(|(_, count)| *count >= FENCE_MIN);
        match (self.inside, fence) {
            (None, Some(fence)) => self.inside = Some(fence),
            (Some((sign, count)), Some((closing, closing_count)))
                if sign == closing && closing_count >= count && !self.after_fence =>
            {
                self.inside = None;
            }
            _ => {}
        }
        let inside = self.inside;
        *self = Self {
            inside,
            ..Self::new()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_end(text: &str) -> Lines {
        let mut lines = Lines::new();
        text.chars().for_each(|c| lines.push(c));
        lines
    }

    #[test]
    fn code_is_told_from_prose() {
        let check = |text: &str, want: bool| {
            assert_eq!(at_end(text).in_code(), want, "{text:?}");
        };
        for prose in [
            "",
            "a",
            "a `b` c",
            "a `b\nc",
            "```\na\n```\n",
            "~~~\n```\n~~~\n",
            "    ```\n",
        ] {
            check(prose, false);
        }
        for code in [
            "`",
            "a `b ",
            "```",
            "```rust\n",
            "```\na\n``\n",
            "~~~\n```\n",
            "```\n``` x\n",
        ] {
            check(code, true);
        }
    }
}
