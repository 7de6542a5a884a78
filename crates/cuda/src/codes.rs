//! What the driver's error codes mean in plain words.

/// Codes of `CUresult` (NVIDIA's driver interface) that are worth words of their own.
const WORDS: &[(u32, &str)] = &[
    (2, "the card has no memory left"),
    (34, "only a stand-in of its library is installed"),
    (46, "the card is in use by another program alone"),
    (201, "the card's context is gone"),
    (209, "the kernels are not made for this card"),
    (214, "the card's memory gave a wrong bit"),
    (218, "the driver does not take the kernels"),
    (222, "the driver is too old for the kernels"),
    (700, "a kernel touched memory that is not its own"),
    (701, "a kernel asked for more than the card has"),
    (702, "a kernel ran for too long"),
    (709, "the card's context is gone"),
    (714, "the card reported a hardware fault"),
    (
        715,
        "a kernel held an instruction that the card does not know",
    ),
    (716, "a kernel touched memory at a crooked address"),
    (
        717,
        "a kernel touched memory in a way that the card does not know",
    ),
    (718, "a kernel jumped to nowhere"),
    (719, "a kernel failed"),
    (802, "the system is still starting it"),
    (
        803,
        "its parts are of different versions, as after an update without a restart",
    ),
    (804, "its compatibility package does not suit this card"),
    (999, "it failed and gives no reason"),
];

/// After these a context is of no use: every later call fails too.
const STICKY: &[u32] = &[
    201, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999,
];

/// Plain words, if there are any.
pub(crate) fn words(code: u32) -> Option<&'static str> {
    let found = WORDS.iter().find(|(known, _)| *known == code);
    found.map(|(_, words)| *words)
}

/// A failed call in plain words.
pub(crate) fn failure(call: &str, code: u32) -> String {
    match words(code) {
        Some(words) => format!("{words}; {call} failed with code {code}"),
        None => format!("{call} failed with code {code}"),
    }
}

/// Whether the context is lost.
pub(crate) fn is_sticky(code: u32) -> bool {
    STICKY.contains(&code)
}
