//! Which of WebKit's and NVIDIA's drawing switches this machine needs.
//!
//! On NVIDIA's driver the web view may stay blank or end the program. The cures differ by
//! display system, and each costs something, so they are applied only where they are needed and
//! never over a choice that the user made. Where a cure is wrong, `--safe-rendering` is the way
//! out. Where there is no card at all, drawing on one is only pretended. Source of the facts: the public threads that other WebKitGTK applications keep on this.

use crate::arguments::Rendering;

/// Draws without the graphics card's buffers: slow, but it works everywhere.
pub(crate) const DISABLE_DMABUF: &str = "WEBKIT_DISABLE_DMABUF_RENDERER";
/// Keeps drawing on the card and hands finished frames over in shared memory.
const FORCE_SHM: &str = "WEBKIT_DMABUF_RENDERER_FORCE_SHM";
/// Without it, NVIDIA's driver on Wayland ends the program with "Error 71 (Protocol error)".
const NO_EXPLICIT_SYNC: &str = "__NV_DISABLE_EXPLICIT_SYNC";

/// Every switch that this module may set; programs that are started from here go without them.
pub(crate) const SWITCHES: [&str; 3] = [DISABLE_DMABUF, FORCE_SHM, NO_EXPLICIT_SYNC];

/// What the choice depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Whether NVIDIA's own kernel driver is loaded.
    pub(crate) nvidia_driver: bool,
    /// Whether the system has a graphics card that programs may draw with.
    pub(crate) draws_on_a_card: bool,
    /// What draws the windows.
    pub(crate) display: Display,
    /// Whether the user set one of the switches.
    pub(crate) user_has_chosen: bool,
}

/// What draws the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Display {
    /// Wayland.
    Wayland,
    /// X11, or nothing that we know.
    X11,
}

/// The switch to set, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// The variable; its value is "1".
    pub(crate) name: &'static str,
    /// For the log.
    pub(crate) why: &'static str,
}

/// Chooses the switch, if one is needed.
pub(crate) fn choose(machine: Machine, wish: Rendering) -> Option<Switch> {
    if machine.user_has_chosen {
        return None;
    }
    let asked = match wish {
        Rendering::Usual => None,
        Rendering::Safe => Some("asked for by --safe-rendering"),
        Rendering::AfterSilence => Some("the page did not come up before"),
    };
    if let Some(why) = asked {
        return Some(Switch {
            name: DISABLE_DMABUF,
            why,
        });
    }
    if !machine.draws_on_a_card && !machine.nvidia_driver {
        // Without a card the processor plays one, and each frame costs it four times as much as when
        // it draws by itself: 2.5 % of a core for a caret that blinks, 0.6 % with the switch.
        return Some(Switch {
            name: DISABLE_DMABUF,
            why: "no graphics card that could draw",
        });
    }
    if !machine.nvidia_driver {
        return None;
    }
    Some(match machine.display {
        Display::Wayland => Switch {
            name: NO_EXPLICIT_SYNC,
            why: "NVIDIA driver on Wayland",
        },
        Display::X11 => Switch {
            name: FORCE_SHM,
            why: "NVIDIA driver on X11",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_follows_driver_display_and_wish() {
        use Display::{Wayland, X11};
        use Rendering::{AfterSilence, Safe, Usual};
        // ((NVIDIA's driver, a card that draws), display, user has chosen, wish) → switch
        let (none, any, nvidia, bare) =
            ((false, false), (false, true), (true, true), (true, false));
        let cases = [
            (any, X11, false, Usual, None),
            (any, Wayland, false, Usual, None),
            (any, X11, false, Safe, Some(DISABLE_DMABUF)),
            (nvidia, X11, false, AfterSilence, Some(DISABLE_DMABUF)),
            (none, X11, false, Usual, Some(DISABLE_DMABUF)),
            (none, Wayland, false, Usual, Some(DISABLE_DMABUF)),
            (none, X11, true, Usual, None),
            (nvidia, X11, false, Usual, Some(FORCE_SHM)),
            (nvidia, Wayland, false, Usual, Some(NO_EXPLICIT_SYNC)),
            (bare, Wayland, false, Usual, Some(NO_EXPLICIT_SYNC)),
            (nvidia, Wayland, false, Safe, Some(DISABLE_DMABUF)),
            (nvidia, X11, true, Usual, None),
            (nvidia, Wayland, true, Safe, None),
        ];
        for ((nvidia_driver, draws_on_a_card), display, user_has_chosen, wish, expected) in cases {
            let machine = Machine {
                nvidia_driver,
                draws_on_a_card,
                display,
                user_has_chosen,
            };
            let found = choose(machine, wish).map(|switch| switch.name);
            assert_eq!(found, expected, "{machine:?} {wish:?}");
            assert!(found.is_none_or(|name| SWITCHES.contains(&name)));
        }
    }
}
