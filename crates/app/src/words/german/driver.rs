//! What is wrong with a driver.

use candor_backend::DriverFault;

use super::German;

/// What codes of `CUresult` mean (NVIDIA's driver interface); `cuda` has their English.
const CODES: &[(u32, &str)] = &[
    (2, "die Karte hat keinen Speicher mehr"),
    (34, "nur ein Platzhalter seiner Bibliothek ist installiert"),
    (46, "ein anderes Programm hat die Karte für sich allein"),
    (201, "der Kontext der Karte ist weg"),
    (209, "die Kernel sind nicht für diese Karte gemacht"),
    (214, "der Speicher der Karte gab ein falsches Bit"),
    (218, "der Treiber nimmt die Kernel nicht an"),
    (222, "der Treiber ist zu alt für die Kernel"),
    (700, "ein Kernel griff auf fremden Speicher zu"),
    (701, "ein Kernel verlangte mehr, als die Karte hat"),
    (702, "ein Kernel lief zu lange"),
    (709, "der Kontext der Karte ist weg"),
    (714, "die Karte meldet einen Fehler der Hardware"),
    (
        715,
        "ein Kernel enthielt einen Befehl, den die Karte nicht kennt",
    ),
    (
        716,
        "ein Kernel griff auf Speicher an einer krummen Adresse zu",
    ),
    (
        717,
        "ein Kernel griff auf eine Art auf Speicher zu, die die Karte nicht kennt",
    ),
    (718, "ein Kernel sprang ins Leere"),
    (719, "ein Kernel ist gescheitert"),
    (802, "das System startet ihn noch"),
    (
        803,
        "seine Teile sind von verschiedenen Versionen, wie nach einem Update ohne Neustart",
    ),
    (
        804,
        "sein Paket für ältere Treiber passt nicht zu dieser Karte",
    ),
    (999, "er ist gescheitert und nennt keinen Grund"),
];

impl German for DriverFault {
    fn german(&self) -> String {
        match self {
            Self::DoesNotLoad { message } => format!("seine Bibliothek lädt nicht: {message}"),
            Self::Incomplete { function } => format!("seiner Bibliothek fehlt {function}"),
            Self::Failed { words, call, code } => {
                let known = CODES.iter().find(|(known, _)| known == code);
                let meaning = known.map(|(_, german)| *german).or(*words);
                let meaning = meaning.map_or_else(String::new, |words| format!("{words}; "));
                format!("{meaning}{call} gab den Code {code}")
            }
            Self::Late { seconds } => format!("er hat in {seconds} Sekunden nicht geantwortet"),
            Self::Crashed { end } => {
                let end = end
                    .replacen("code ", "Code ", 1)
                    .replacen("signal ", "Signal ", 1);
                format!("er ist abgestürzt, als er gefragt wurde: {end}")
            }
            Self::NoAnswer => String::from("seine Prüfung gab keine Antwort"),
            Self::Unread { message } => {
                format!("seine Antwort ließ sich nicht lesen: {message}")
            }
            Self::NotAsked { message } => {
                format!("seine Prüfung ließ sich nicht starten: {message}")
            }
            // Where it stopped working, it is the card's thread that says it.
            Self::Lost { reason } => reason.clone(),
        }
    }
}
